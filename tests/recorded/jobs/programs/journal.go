// Eight goroutines append to one journal and bring each line to the disk.
package main

import (
	"fmt"
	"os"
	"sync"
	"time"
)

var lock sync.Mutex

//go:noinline
func appendJournal(file *os.File, line string) {
	lock.Lock()
	defer lock.Unlock()
	file.WriteString(line)
	file.Sync()
}

func main() {
	file, err := os.Create("journal.txt")
	if err != nil {
		panic(err)
	}
	for number := 0; number < 8; number++ {
		go func() {
			for {
				appendJournal(file, "line\n")
			}
		}()
	}
	time.Sleep(300 * time.Millisecond)
	fmt.Fprintln(os.Stderr, "ready")
	select {}
}
