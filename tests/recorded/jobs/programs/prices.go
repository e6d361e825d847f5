// Asks a slow service for prices, with four goroutines: the port is the argument.
package main

import (
	"fmt"
	"io"
	"net/http"
	"os"
	"time"
)

//go:noinline
func fetchPrice(address string) {
	answer, err := http.Get(address)
	if err != nil {
		panic(err)
	}
	io.Copy(io.Discard, answer.Body)
	answer.Body.Close()
}

func main() {
	address := "http://127.0.0.1:" + os.Args[1] + "/price"
	for number := 0; number < 4; number++ {
		go func() {
			for {
				fetchPrice(address)
			}
		}()
	}
	time.Sleep(500 * time.Millisecond)
	fmt.Fprintln(os.Stderr, "ready")
	select {}
}
