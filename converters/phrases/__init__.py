"""Verdicts in words: one function for each rule. Nothing reads what they say."""
