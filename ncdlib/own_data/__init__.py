"""A table of your own: read it, discover classes in it, explain and report them."""
