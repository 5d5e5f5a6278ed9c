package alerts

// admission returns the alerts about hosts and their memberships.
func admission() []Rule {
	return []Rule{
		{
			Name: "BrakeEngaged", Severity: Critical,
			Expr:    `max by (fabric, class) (portcullis_admission_brake_engaged) == 1`,
			Summary: "The brake keeps memberships that causes of class {{ $labels.class }} would take",
			Means:   "Many hosts would lose memberships at once without an operator's order. They keep them until an operator decides.",
			Do: []string{
				"`portcullis admission brake show` lists the hosts and why.",
				"Repair the cause, or take the memberships: `portcullis admission brake release --class CLASS --reason TEXT`.",
			},
			More:   "[availability.md](availability.md#the-brake)",
			Fires:  []Series{{Name: "portcullis_admission_brake_engaged", Labels: `class="evidence"`, Values: "1x60"}},
			Labels: map[string]string{"class": "evidence"},
			Says:   "The brake keeps memberships that causes of class evidence would take",
			Quiet:  []Series{{Name: "portcullis_admission_brake_engaged", Labels: `class="evidence"`, Values: "0x60"}},
		},
		{
			Name: "AdmissionsLost", Severity: Critical,
			Expr:    `max by (fabric) (increase(portcullis_admissions_lost_total[15m])) > 0`,
			Summary: "Hosts ceased to be admitted although their assignment goes on",
			Means:   "Memberships of hosts were withdrawn without an operator's order, or the fabric no longer shows them: another host at their place, a denied key, a policy that changed, a switch that lost its tables.",
			Do: []string{
				"`portcullis events` and `portcullis audit list` name the hosts and the causes.",
				"`portcullis host show HOST` names the condition that is not met.",
			},
			More:  "[when.md](when.md#a-host-is-not-admitted)",
			Fires: []Series{{Name: "portcullis_admissions_lost_total", Values: "0x50 1x10"}},
			Says:  "Hosts ceased to be admitted although their assignment goes on",
			Quiet: []Series{{Name: "portcullis_admissions_lost_total", Values: "7x60"}},
		},
		{
			Name: "AttestationsFail", Severity: Warning,
			Expr:    `sum by (fabric) (increase(portcullis_attestations_total{result="refused",proven="tpm"}[30m])) > 5`,
			Summary: "Evidence of hosts whose TPM answered is refused",
			Means:   "More than five times in 30 minutes the evidence or the seal of a host was refused although its TPM had proven which host it is: boots that no reference values have, adapters that policy refuses, or a host that attests again and again.",
			Do: []string{
				"`portcullis host show HOST` of hosts that wait has the code of the last refusal.",
				"If hosts of one class fail since an update, learn the boot: `portcullis reference diff`.",
			},
			More:  "[when.md](when.md#evidence-is-refused)",
			Fires: []Series{{Name: "portcullis_attestations_total", Labels: `result="refused",proven="tpm"`, Values: "0x40 0+1x20"}},
			Says:  "Evidence of hosts whose TPM answered is refused",
			Quiet: []Series{
				{Name: "portcullis_attestations_total", Labels: `result="refused",proven="tpm"`, Values: "0x50 1x10"},
				{Name: "portcullis_attestations_total", Labels: `result="refused",proven="name"`, Values: "0+100x60"},
				{Name: "portcullis_attestations_total", Labels: `result="accepted",proven="tpm"`, Values: "0+100x60"},
			},
		},
		{
			Name: "AdmissionsWait", Severity: Warning, For: "30m",
			Expr:    `max by (fabric, phase) (portcullis_hosts{phase=~"verified|granting"}) > 0`,
			Summary: "{{ $value }} hosts are {{ $labels.phase }} and not admitted",
			Means:   "Hosts have proven what they are, and are not admitted after 30 minutes: a cable, a port that is not seen, a full P_Key table, or a device that does not take its table.",
			Do:      []string{"`portcullis host list --phase PHASE` lists them, `portcullis host show HOST` names the condition that is not met."},
			More:    "[when.md](when.md#a-host-is-not-admitted)",
			Fires:   []Series{{Name: "portcullis_hosts", Labels: `phase="verified"`, Values: "3x60"}},
			Labels:  map[string]string{"phase": "verified"},
			Says:    "3 hosts are verified and not admitted",
			Quiet:   []Series{{Name: "portcullis_hosts", Labels: `phase="verified"`, Values: "3x10 0x50"}, {Name: "portcullis_hosts", Labels: `phase="admitted"`, Values: "9x60"}},
		},
		{
			Name: "ReleasesWait", Severity: Critical, For: "10m",
			Expr:    `max by (fabric) (portcullis_hosts{phase="releasing"}) > 0`,
			Summary: "{{ $value }} hosts that were released may still have P_Keys in a switch port",
			Means:   "The assignment of hosts has ended, and it is not read back after 10 minutes that each P_Key is gone. Do not assign these hosts to another tenant; they cannot be assigned meanwhile.",
			Do: []string{
				"`portcullis host list --phase releasing`, then `portcullis host show HOST`: the switch that does not answer.",
				"`portcullis host fence HOST --reason TEXT` shuts the switch ports of the host.",
			},
			Fires: []Series{{Name: "portcullis_hosts", Labels: `phase="releasing"`, Values: "1x60"}},
			Says:  "1 hosts that were released may still have P_Keys in a switch port",
			Quiet: []Series{{Name: "portcullis_hosts", Labels: `phase="releasing"`, Values: "1x4 0x56"}},
		},
	}
}
