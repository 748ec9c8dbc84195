"""Objects, dispatches, captures, runs and candidates, to rows and back."""
