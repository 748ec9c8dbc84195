"""A language model as a proposer, through the Messages API."""
