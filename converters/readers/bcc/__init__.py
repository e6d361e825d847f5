"""Stacks as the tools of bcc print them."""
