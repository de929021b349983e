"""Commands for what happens while nobody is at the keyboard."""
