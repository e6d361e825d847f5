// Goroutines that sleep, read, accept and contend for a lock, and a main one that also computes. Until it is killed.
package main

import (
	"net"
	"os"
	"runtime"
	"sync"
	"time"
)

//go:noinline
func sleeper() {
	for {
		time.Sleep(time.Millisecond)
	}
}

//go:noinline
func reader(f *os.File) {
	b := make([]byte, 1)
	for {
		f.Read(b)
	}
}

//go:noinline
func accepter(l net.Listener) {
	for {
		c, err := l.Accept()
		if err == nil {
			c.Close()
		}
	}
}

//go:noinline
func locked(m *sync.Mutex) {
	runtime.LockOSThread()
	for {
		m.Lock()
		time.Sleep(500 * time.Microsecond)
		m.Unlock()
	}
}

func main() {
	r, w, _ := os.Pipe()
	l, _ := net.Listen("tcp", "127.0.0.1:0")
	var m sync.Mutex
	go sleeper()
	go reader(r)
	go accepter(l)
	go locked(&m)
	go locked(&m)
	var spin int
	for {
		time.Sleep(700 * time.Microsecond)
		w.Write([]byte{1})
		for i := 0; i < 100000; i++ {
			spin++
		}
	}
}
