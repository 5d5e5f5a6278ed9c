package testenv_test

import (
	"net"
	"strconv"
	"testing"

	"portcullis/packaging/testenv"
)

// No address is given twice while a test has it, and none that a program listens on.
func TestAddresses(t *testing.T) {
	given := map[string]bool{}
	for range 40 {
		for _, address := range testenv.Addresses(t, 5) {
			if given[address] {
				t.Errorf("%s is given twice", address)
			}
			given[address] = true
			_, port, err := net.SplitHostPort(address)
			if err != nil {
				t.Fatal(err)
			}
			if n, err := strconv.Atoi(port); err != nil || n < 20000 || n >= 32768 {
				t.Errorf("port %s: want one below those that the kernel gives to any socket", port)
			}
			l, err := net.Listen("tcp", address)
			if err != nil {
				t.Fatal(err)
			}
			defer l.Close()
		}
	}
}
