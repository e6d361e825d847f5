# Four threads compute in Ruby: one of them has the interpreter's lock.
def add_tax(count)
  (1..count).reduce { |sum, number| (sum + number * 119) % 1_000_003 }
end

threads = 4.times.map { Thread.new { loop { add_tax(10_000) } } }
sleep 0.5
warn 'ready'
threads.each(&:join)
