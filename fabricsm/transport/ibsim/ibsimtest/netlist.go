package ibsimtest

// TwoHosts is the netlist of the hosts "sm" and "h1" on ports 1 and 2 of the
// switch "leaf1".
const TwoHosts = `caguid=0x0020000000000000
Ca 1 "sm"	# "sm"
[1]	"leaf1"[1]	# lid 0 lmc 0 "leaf1" lid 0 4xEDR

caguid=0x0020000000000100
Ca 1 "h1"	# "h1"
[1]	"leaf1"[2]	# lid 0 lmc 0 "leaf1" lid 0 4xEDR

switchguid=0x0010000100000001
Switch 4 "leaf1"	# "leaf1" base port 0 lid 0 lmc 0
[1]	"sm"[1]	# "sm" lid 0 4xEDR
[2]	"h1"[1]	# "h1" lid 0 4xEDR

`
