// Package netlist reads, writes and generates the files that describe a fabric to ibsim: nodes, their GUIDs, and the cables
// between their ports.
//
// The grammar is that of ibsim, and of the output of ibnetdiscover:
//
//	switchguid=0x0010000100000001
//	Switch 36 "leaf1"	# "leaf1" base port 0 lid 0 lmc 0
//	[1]	"sm"[1]	# "sm" lid 0 4xEDR
//
//	caguid=0x0020000000000000
//	Ca 1 "sm"	# "sm"
//	[1]	"leaf1"[1]	# lid 0 lmc 0 "leaf1" lid 0 4xEDR
//
// ibsim ignores the parts of a file that it does not understand. This package refuses them, and reports every problem with
// its line. Not supported are include files, console commands ("do"), module prefixes and port aliases.
package netlist
