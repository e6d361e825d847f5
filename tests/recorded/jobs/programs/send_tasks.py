"""Puts tasks into the queue."""

from tasks import charge_card

for number in range(2000):
    charge_card.delay(number)
