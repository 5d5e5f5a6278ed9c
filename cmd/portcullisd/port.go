package main

import (
	"errors"
	"fmt"
	"strings"

	"portcullis/fabricsm/transport/ibsim"
)

// parsePort reads fabric.port: "ibsim:SOCKET/NODE".
func parsePort(s string) (ibsim.Options, error) {
	kind, rest, ok := strings.Cut(s, ":")
	switch {
	case s == "":
		return ibsim.Options{}, errors.New("is empty: want ibsim:SOCKET/NODE")
	case kind == "umad":
		return ibsim.Options{}, fmt.Errorf("%q: real HCAs through umad are not built yet; this version supports ibsim:SOCKET/NODE", s)
	case !ok || kind != "ibsim":
		return ibsim.Options{}, fmt.Errorf("%q: want ibsim:SOCKET/NODE", s)
	}
	slash := strings.LastIndexByte(rest, '/')
	if slash < 0 {
		return ibsim.Options{}, fmt.Errorf("%q: want a slash between socket and node, for example ibsim:sim/Hca1", s)
	}
	o := ibsim.Options{Socket: rest[:slash], Node: rest[slash+1:], AsSM: true}
	if o.Socket == "" {
		return ibsim.Options{}, fmt.Errorf("%q: the socket is empty: the simulator's default is %s", s, ibsim.DefaultSocket)
	}
	return o, nil
}
