"""The screen of a scan that goes on: what is shown of an interval, what keys do, and how it looks."""
