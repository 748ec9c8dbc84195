"""One real dispatch on disk: its launch, and the memory it touches before and after."""
