"""The scheduler's events in formats that support only calls: Chrome's and speedscope's."""
