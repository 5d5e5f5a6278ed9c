package alerts

// manager returns the alerts about the Subnet Manager.
func manager() []Rule {
	return []Rule{
		{
			Name: "NoManager", Severity: Critical, For: "1m",
			Expr:    `max by (fabric) (portcullis_sm_role{role="master"}) == 0`,
			Summary: "No instance manages the fabric",
			Means:   "No instance that is scraped is the master Subnet Manager. Links that come up stay in Init, and no host is admitted. Grants that are in the switches stay.",
			Do: []string{
				"`portcullis sm status`, asked of any instance, says which one leads, or why none does.",
				"`journalctl -u portcullisd` on the machine that is to lead: the port, the adapter, the store, or another Subnet Manager of higher priority.",
				"If another product's Subnet Manager took over, stop it.",
			},
			More:  "[cluster.md](cluster.md#which-instance-leads)",
			Fires: []Series{{Name: "portcullis_sm_role", Labels: `role="master"`, Values: "0x60"}, {Name: "portcullis_sm_role", Labels: `role="master"`, Values: "0x60", From: "b:7443"}},
			Says:  "No instance manages the fabric",
			Quiet: []Series{{Name: "portcullis_sm_role", Labels: `role="master"`, Values: "1x60"}, {Name: "portcullis_sm_role", Labels: `role="master"`, Values: "0x60", From: "b:7443"}},
		},
		{
			Name: "SightLost", Severity: Critical, For: "1m",
			Expr:    `portcullis_fabric_sight{state="clear"} == 0`,
			Summary: "The Subnet Manager of {{ $labels.instance }} does not see nodes that it knew",
			Means:   "The Subnet Manager is blind or partly blind: its adapter is gone, its own port has no link, or many nodes went out of sight at once. Nothing is withdrawn meanwhile, and no host is admitted.",
			Do: []string{
				"`portcullis sm status` names the cause, since when, and which switches and hosts.",
				"Repair the adapter, the link or the switch.",
				"If the nodes are gone permanently: `portcullis sm forget --reason TEXT`.",
			},
			More:   "[availability.md](availability.md#when-the-subnet-manager-is-blind)",
			Fires:  []Series{{Name: "portcullis_fabric_sight", Labels: `state="clear"`, Values: "0x60"}},
			Labels: map[string]string{"state": "clear"}, Scrape: true,
			Says:  "The Subnet Manager of a:7443 does not see nodes that it knew",
			Quiet: []Series{{Name: "portcullis_fabric_sight", Labels: `state="clear"`, Values: "1x60"}, {Name: "portcullis_fabric_sight", Labels: `state="blind"`, Values: "0x60"}},
		},
		{
			Name: "ManagerFrozen", Severity: Critical, For: "5m",
			Expr: `sum by (fabric, job, instance) (portcullis_sm_queue_length) > 0` +
				` and sum by (fabric, job, instance) (rate(portcullis_sm_smp_sent_total[5m])) == 0`,
			Summary: "The Subnet Manager of {{ $labels.instance }} has work to do and sends nothing",
			Means:   "Work waits in the queue of the Subnet Manager, and it has sent no request for 5 minutes. Changes of the fabric and of memberships are not carried out.",
			Do: []string{
				"`portcullis sm status` and `journalctl -u portcullisd`: a store without quorum, a port that does not send, or facts that could not be kept.",
				"If the cause is none of these, save `portcullis sm status` and the journal, and restart the service: grants stay in the switches.",
			},
			Fires: []Series{
				{Name: "portcullis_sm_queue_length", Labels: `work="P_KeyTable"`, Values: "4x60"},
				{Name: "portcullis_sm_smp_sent_total", Labels: `method="SubnGet",attribute="NodeInfo"`, Values: "100x60"},
			},
			Scrape: true,
			Says:   "The Subnet Manager of a:7443 has work to do and sends nothing",
			Quiet: []Series{
				{Name: "portcullis_sm_queue_length", Labels: `work="P_KeyTable"`, Values: "4x60"},
				{Name: "portcullis_sm_smp_sent_total", Labels: `method="SubnGet",attribute="NodeInfo"`, Values: "100+50x60"},
			},
		},
		{
			Name: "NotSettled", Severity: Warning, For: "15m",
			Expr:    `portcullis_sm_settled == 0 and on (job, instance) portcullis_sm_role{role="master"} == 1`,
			Summary: "The fabric of {{ $labels.instance }} has not been as wanted for 15 minutes",
			Means:   "The Subnet Manager still has something to write, or something comes up again and again.",
			Do: []string{
				"`portcullis sm status` says what it does. A fabric that is brought up takes a minute.",
				"`portcullis fabric show` lists devices that do not answer, refuse writes or flap.",
			},
			Fires: []Series{
				{Name: "portcullis_sm_settled", Values: "0x60"},
				{Name: "portcullis_sm_role", Labels: `role="master"`, Values: "1x60"},
			},
			Scrape: true,
			Says:   "The fabric of a:7443 has not been as wanted for 15 minutes",
			Quiet: []Series{
				{Name: "portcullis_sm_settled", Values: "1x60"},
				{Name: "portcullis_sm_role", Labels: `role="master"`, Values: "1x60"},
				{Name: "portcullis_sm_settled", Values: "0x60", From: "b:7443"},
				{Name: "portcullis_sm_role", Labels: `role="master"`, Values: "0x60", From: "b:7443"},
			},
		},
		{
			Name: "RemovalsWait", Severity: Critical, For: "2m",
			Expr:    `portcullis_reconcile_drift{kind="p_keys_to_take_away"} > 0`,
			Summary: "{{ $value }} P_Key tables of {{ $labels.instance }} still hold what is to be taken away",
			Means:   "A membership was withdrawn, and a switch port or an adapter still has its P_Key: the host may still reach the partition that it was taken out of.",
			Do: []string{
				"`portcullis fabric show` names the device that does not answer or refuses the write.",
				"If it is a switch that no longer answers, shut its ports from the other side or cut its power.",
			},
			Fires:  []Series{{Name: "portcullis_reconcile_drift", Labels: `kind="p_keys_to_take_away"`, Values: "3x60"}},
			Labels: map[string]string{"kind": "p_keys_to_take_away"}, Scrape: true,
			Says:  "3 P_Key tables of a:7443 still hold what is to be taken away",
			Quiet: []Series{{Name: "portcullis_reconcile_drift", Labels: `kind="p_keys_to_take_away"`, Values: "0 5 0x58"}, {Name: "portcullis_reconcile_drift", Labels: `kind="lft_blocks"`, Values: "9x60"}},
		},
		{
			Name: "Drift", Severity: Warning, For: "15m",
			Expr:    `portcullis_reconcile_drift{kind!="p_keys_to_take_away"} > 0`,
			Summary: "{{ $value }} {{ $labels.kind }} of {{ $labels.instance }} differ from what is wanted",
			Means:   "Tables or ports differ from what is wanted, and are still to be written after 15 minutes.",
			Do: []string{
				"`portcullis sm status` says what is written, `portcullis fabric show` which device does not take it.",
			},
			Fires:  []Series{{Name: "portcullis_reconcile_drift", Labels: `kind="lft_blocks"`, Values: "7x60"}},
			Labels: map[string]string{"kind": "lft_blocks"}, Scrape: true,
			Says:  "7 lft_blocks of a:7443 differ from what is wanted",
			Quiet: []Series{{Name: "portcullis_reconcile_drift", Labels: `kind="lft_blocks"`, Values: "7x5 0x60"}},
		},
		{
			Name: "Timeouts", Severity: Warning, For: "10m",
			Expr: `sum by (fabric, job, instance) (rate(portcullis_sm_smp_total{result="timeout"}[10m]))` +
				` / sum by (fabric, job, instance) (rate(portcullis_sm_smp_total[10m])) > 0.05`,
			Summary: "{{ $value | humanizePercentage }} of the requests of {{ $labels.instance }} are not answered",
			Means:   "Devices do not answer the Subnet Manager: switches that are overloaded or dead, links that lose packets, or M_Keys that another manager set.",
			Do: []string{
				"`portcullis fabric show` lists the devices.",
				"`portcullis fabric keys` shows devices that hold keys of another manager.",
			},
			Fires: []Series{
				{Name: "portcullis_sm_smp_total", Labels: `class="subn_directed",result="timeout"`, Values: "0+10x60"},
				{Name: "portcullis_sm_smp_total", Labels: `class="subn_directed",result="answered"`, Values: "0+90x60"},
			},
			Scrape: true,
			Says:   "10% of the requests of a:7443 are not answered",
			Quiet: []Series{
				{Name: "portcullis_sm_smp_total", Labels: `class="subn_directed",result="timeout"`, Values: "0+1x60"},
				{Name: "portcullis_sm_smp_total", Labels: `class="subn_directed",result="answered"`, Values: "0+99x60"},
			},
		},
		{
			Name: "FabricFault", Severity: Warning, For: "10m",
			Expr:    `portcullis_fabric_faults > 0`,
			Summary: "{{ $value }} faults of kind {{ $labels.kind }} in the fabric of {{ $labels.instance }}",
			Means:   "Something in the fabric is wrong now, and the Subnet Manager cannot change it.",
			Do:      []string{"`portcullis fabric show` lists each fault, its place and what to do."},
			Fires:   []Series{{Name: "portcullis_fabric_faults", Labels: `kind="duplicate-guid"`, Values: "2x60"}},
			Labels:  map[string]string{"kind": "duplicate-guid"}, Scrape: true,
			Says:  "2 faults of kind duplicate-guid in the fabric of a:7443",
			Quiet: []Series{{Name: "portcullis_fabric_faults", Labels: `kind="duplicate-guid"`, Values: "2x5 0x60"}},
		},
		{
			Name: "Unhealthy", Severity: Warning, For: "5m",
			Expr:    `portcullis_fabric_unhealthy > 0`,
			Summary: "{{ $value }} places are {{ $labels.condition }} ({{ $labels.action }}) in the fabric of {{ $labels.instance }}",
			Means:   "Devices misbehave so much that a rule applies; the label action says what follows for them.",
			Do: []string{
				"`portcullis fabric health` names the places and since when.",
				"Repair the device or its cable, then `portcullis fabric health release PLACE` if the mark stays.",
			},
			Fires:  []Series{{Name: "portcullis_fabric_unhealthy", Labels: `condition="flapping",action="isolate"`, Values: "1x60"}},
			Labels: map[string]string{"condition": "flapping", "action": "isolate"}, Scrape: true,
			Says:  "1 places are flapping (isolate) in the fabric of a:7443",
			Quiet: []Series{{Name: "portcullis_fabric_unhealthy", Labels: `condition="flapping",action="isolate"`, Values: "1x3 stale"}},
		},
	}
}
