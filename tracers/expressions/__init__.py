"""Questions about calls: expressions over arguments and results, checked and compiled into C."""
