// Looks for a pattern in a text, on two cores.
package main

import (
	"fmt"
	"os"
	"regexp"
	"strings"
)

var text = strings.Repeat("the quick brown fox jumps over the lazy dog ", 2000)

//go:noinline
func findCustomers(pattern *regexp.Regexp) int {
	return len(pattern.FindAllString(text, -1))
}

func main() {
	pattern := regexp.MustCompile(`(\w+ )+fox [a-z]* over`)
	go func() {
		for {
			findCustomers(pattern)
		}
	}()
	findCustomers(pattern)
	fmt.Fprintln(os.Stderr, "ready")
	for {
		findCustomers(pattern)
	}
}
