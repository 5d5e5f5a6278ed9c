package config

const SMUsage = `Usage:
  portcullisd sm --port PORT [options]    run a Subnet Manager alone

PORT is
  umad:DEVICE[:PORT]    a port of an HCA
  ibsim:SOCKET/NODE     a node of a running simulator
  sim:NETLIST           the first CA of a fabric simulated in this process

Options:
  --port PORT           the port to run on; may stand in FILE of --config instead
  --once                end when the fabric is settled, and say what was done; names
                        of nodes are read only after that
  --json                print the outcome, or without --once each event, as JSON
  --partitions FILE     read partitions from FILE, in OpenSM's grammar
  --record FILE         write all input of the subnet manager into FILE, which must
                        not be there, for "portcullis replay FILE"; no key is in it
  --capture FILE        write all packets both ways into FILE, which must not be there,
                        as pcap with link type 247; keys in it are zeros
  --state-dir DIR       keep LIDs and what devices forget in DIR, and DIR/guid2lid for
                        OpenSM; default: LIDs stay as they are on the ports
  --config FILE         take what follows from the section "fabric" of FILE, which
                        "portcullisd --print-config" explains; options override it
  --enforcement HOW     proof that switches enforce P_Keys: verified (default), or
                        accepted, for simulators
  --priority N          priority among Subnet Managers, 0 to 15; default 14
  --sm-key-file FILE    SM_Key that other Subnet Managers must show
  --sa                  answer hosts as subnet administration (default); --sa=false: do not
  --sa-key-file FILE    SA_Key that makes a request to subnet administration trusted
  --sa-options FILE     OpenSM's options about subnet administration, such as its
                        opensm.conf
  --sa-enhanced-trust-model
                        drop what hosts need not ask without the SA_Key (default)
  --service-name2key-map-file FILE
                        service names that need a key, and which
  --prefix-routes-file FILE
                        routers to other subnets, as in OpenSM's prefix-routes.conf
  --allowed-sm SM       another Subnet Manager to work with, PORT-GUID or
                        PORT-GUID@SWITCH-GUID/PORT; may be repeated
  --master-priority N   priority while master, if above --priority; default 15
  --poll-every DURATION how often a standby looks whether the master lives;
                        default 500ms
  --attached-to GUID    switch that the port is cabled to, where devices have M_Keys and
                        neither the state nor the declared topology knows it
  --lmc N               2^N LIDs and ways for every port of a host, 0 to 7; default 0
  --timeout DURATION    how long an answer may take; default 200ms
  --audit-period DURATION
                        how often every port is read again; default 10m
  --lid-period DURATION
                        how often the LID of every adapter is read again; default 2s,
                        0: with the audit only
  --counter-period DURATION
                        how often counters are looked at, to report those that
                        a host reset; default 0, never
  --counters-every DURATION
                        how often the counters of every port are read for metrics;
                        default 30s, 0: never
  --counters-rate N     requests in a second for these, at most; default 5000
  --mute-period DURATION
                        how often the packets are read that ports of switches without
                        trap 259 have refused; default 30s, 0: never
  --window N            requests under way at once; default 64
  --tries N             tries before a node counts as silent; default 3
  --keys-root FILE      assign M_Keys to devices, sealed under FILE of "portcullis keys root"
                        in DIR of --state-dir
  --topology FILE       which device belongs behind which switch port: a native revision
                        or a topoconfig.conf (docs/understand/topospec.md)
  --topology-mode MODE  observe, warn, or enforce: ports that differ are switched off
  --guid2lid FILE       LIDs for ports that have none in DIR, as OpenSM kept them
  --qos                 program quality of service: SL-to-VL and arbitration tables
  --qos-options FILE    OpenSM's options qos and qos_*, such as its opensm.conf
  --qos-policy FILE     OpenSM's qos-policy.conf: levels for paths
  --prefix PREFIX       subnet prefix; default 0xfe80000000000000
  --max-mtu BYTES       largest MTU of a link; default 4096
  --max-vls N           largest number of data VLs of a link; default 15
  --engine LIST         routing engines, tried in this order: some of dfp,
                        dfsssp, dnup, dor, file, ftree, minhop, torus-2QoS and updn,
                        with commas between; default minhop,updn
  --root-guid-file FILE switches on top of updn and ftree, a node GUID a line
  --cn-guid-file FILE   compute nodes, for ftree, a port GUID a line
  --io-guid-file FILE   I/O nodes, for ftree, a port GUID a line
  --ids-guid-file FILE  which of equally high switches is on top of updn, a node GUID
                        and a number a line
  --max-reverse-hops N  links that routes of I/O nodes may go down before they go up
                        again, for ftree; default -1, any number
  --port-search-ordering-file FILE
                        switches whose ports are not in the order of dimensions, for
                        dor, a node GUID and the ports a line
  --torus-config FILE   size and seeds of a torus, as torus-2QoS.conf(5) says
  --group-file FILE     groups of a dragonfly+, a node GUID and a number a line
  --lfts-file FILE      tables for the engine file, as in opensm-lfts.dump
  --guid-routing-order-file FILE
                        ports to be routed before others, for minhop, updn, dnup, ftree
                        and dfsssp, a port GUID a line
  --ignore-guids-file FILE
                        ports that are left out when the load of links is counted, for
                        the same engines, a node GUID and a port a line
  --hop-weights-file FILE
                        what ports of switches count for in place of one hop, for
                        minhop, a node GUID, a port and 1 to 255 a line
  --max-lanes N         largest number of VLs that routes are dealt to; default 8
  --link-speed SPEED    speeds to enable: keep as found (default), supported, or the
                        fastest, SDR to XDR
  --link-width WIDTH    widths to enable: keep (default), supported, or 1x to 12x
  --retrain             take links down and up for a change of these
  --socket PATH         make a unix socket, for "portcullis sm top --socket PATH" and
                        "portcullis fabric ... --socket PATH"
  --metrics ADDR:PORT   serve /metrics for Prometheus; loopback only

Signals: SIGHUP reads the partitions and the configuration again, and says which
keys need a restart; SIGTERM stops.
`
