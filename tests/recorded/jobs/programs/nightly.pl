# A nightly job: it locks a file as long as it works, for so many milliseconds.
use strict;
use warnings;
use Fcntl ':flock';
use Time::HiRes 'sleep';

my $work = shift;
open(my $file, '>>', 'nightly.lock') or die;

sub take_turn {
    flock($file, LOCK_EX) or die;
}

print STDERR "ready\n";
while (1) {
    take_turn();
    sleep($work / 1000);
    flock($file, LOCK_UN);
}
