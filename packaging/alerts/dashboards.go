package alerts

// Dashboards returns all dashboards.
func Dashboards() []Dashboard {
	return []Dashboard{managerBoard(), portsBoard(), admissionBoard(), securityBoard(), instancesBoard()}
}

func managerBoard() Dashboard {
	return Dashboard{
		File: "portcullis-manager", Title: "Fabric manager", Help: "What the Subnet Manager sees and does.",
		Panels: []Panel{
			{Title: "Master", Help: "Instances that are the master Subnet Manager: want 1.", Unit: "short", Now: true, Queries: []Query{{`sum(portcullis_sm_role{role="master",$F})`, ""}}},
			{Title: "Settled", Help: "1 while the fabric is as wanted.", Unit: "short", Now: true, Queries: []Query{{`max(portcullis_sm_settled{$F})`, ""}}},
			{Title: "Sees the fabric", Help: "1 while the Subnet Manager sees what it knows.", Unit: "short", Now: true, Queries: []Query{{`min(portcullis_fabric_sight{state="clear",$F})`, ""}}},
			{Title: "Faults", Help: "What is wrong in the fabric now: portcullis fabric show lists it.", Unit: "short", Now: true, Queries: []Query{{`sum(portcullis_fabric_faults{$F}) or vector(0)`, ""}}},
			{Title: "Nodes", Help: "Switches, adapters and routers that are seen.", Unit: "short", Queries: []Query{{`max by (type) (portcullis_fabric_nodes{$F})`, "{{type}}"}}},
			{Title: "Ports", Help: "Ports with a cable, by state.", Unit: "short", Queries: []Query{{`max by (state) (portcullis_fabric_ports{$F})`, "{{state}}"}}},
			{Title: "Links", Help: "Links that are seen, and those that run below what both ends offer.", Unit: "short", Queries: []Query{{`max(portcullis_fabric_links{$F})`, "links"}, {`max(portcullis_fabric_links_degraded{$F})`, "degraded"}}},
			{Title: "Still to be written", Help: "What differs from what is wanted.", Unit: "short", Queries: []Query{{`max by (kind) (portcullis_reconcile_drift{$F})`, "{{kind}}"}}},
			{Title: "Requests", Help: "SMPs a second by how they ended.", Unit: "ops", Queries: []Query{{`sum by (result) (rate(portcullis_sm_smp_total{$F}[$__rate_interval]))`, "{{result}}"}}},
			{Title: "Outstanding requests", Help: "SMPs without an answer yet, and how many there may be at once.", Unit: "short", Queries: []Query{{`max(portcullis_sm_smp_outstanding{$F})`, "outstanding"}, {`max(portcullis_sm_smp_window{$F})`, "limit"}}},
			{Title: "Time until settled", Help: "95 of 100 changes were carried out in this time, by kind.", Unit: "s", Queries: []Query{{`histogram_quantile(0.95, sum by (le, kind) (rate(portcullis_sm_sweep_seconds_bucket{$F}[$__rate_interval])))`, "{{kind}}"}}},
			{Title: "Declared links", Help: "Links of the declared topology.", Unit: "short", Queries: []Query{{`max by (state) (portcullis_topology_links{$F})`, "{{state}}"}}},
			{Title: "Subnet administration", Help: "Packets that came, and answers of one MAD, a second.", Unit: "ops", Queries: []Query{{`sum(rate(portcullis_sa_packets_total{$F}[$__rate_interval]))`, "packets"}, {`sum(rate(portcullis_sa_answers_total{$F}[$__rate_interval]))`, "answers"}}},
			{Title: "Unhealthy places", Help: "By condition.", Unit: "short", Queries: []Query{{`sum by (condition) (portcullis_fabric_unhealthy{$F})`, "{{condition}}"}}},
		},
	}
}

func admissionBoard() Dashboard {
	return Dashboard{
		File: "portcullis-admission", Title: "Admission and hosts", Help: "Where hosts stand, and what is refused.",
		Panels: []Panel{
			{Title: "Admitted", Help: "Hosts that are admitted.", Unit: "short", Now: true, Queries: []Query{{`max(portcullis_hosts{phase="admitted",$F})`, ""}}},
			{Title: "Releasing", Help: "Hosts whose P_Keys are not proven absent yet.", Unit: "short", Now: true, Queries: []Query{{`max(portcullis_hosts{phase="releasing",$F})`, ""}}},
			{Title: "Kept by the brake", Help: "Hosts that keep memberships which automatic causes would take.", Unit: "short", Now: true, Queries: []Query{{`max(portcullis_admission_brake_held_hosts{$F})`, ""}}},
			{Title: "Lost admissions", Help: "Hosts that ceased to be admitted in the last day although their assignment goes on.", Unit: "short", Now: true, Queries: []Query{{`max(increase(portcullis_admissions_lost_total{$F}[1d]))`, ""}}},
			{Title: "Hosts by phase", Help: "Hosts that were ever assigned.", Unit: "short", Queries: []Query{{`max by (phase) (portcullis_hosts{$F})`, "{{phase}}"}}},
			{Title: "Time to admit and to isolate", Help: "95 of 100 hosts were admitted this long after their evidence, and proven isolated this long after their release.", Unit: "s", Queries: []Query{
				{`histogram_quantile(0.95, sum by (le) (rate(portcullis_host_admit_seconds_bucket{$F}[$__rate_interval])))`, "admit"},
				{`histogram_quantile(0.95, sum by (le) (rate(portcullis_host_isolate_seconds_bucket{$F}[$__rate_interval])))`, "isolate"},
			}},
			{Title: "Evidence", Help: "Evidence and seals a second, by result and by what the sender had proven.", Unit: "ops", Queries: []Query{{`sum by (result, proven) (rate(portcullis_attestations_total{$F}[$__rate_interval]))`, "{{result}}, {{proven}}"}}},
			{Title: "Signed results", Help: "Attestation results a second, by status.", Unit: "ops", Queries: []Query{{`sum by (status) (rate(portcullis_attestation_results_total{$F}[$__rate_interval]))`, "{{status}}"}}},
			{Title: "P_Key tables", Help: "Fill of the fullest table of each kind.", Unit: "percentunit", Queries: []Query{{`max by (table) (portcullis_pkey_table_fill_ratio{$F})`, "{{table}}"}}},
			{Title: "Waivers", Help: "Classes of hosts whose boots are not compared with anything.", Unit: "short", Queries: []Query{{`max by (state) (portcullis_reference_waivers{$F})`, "{{state}}"}}},
		},
	}
}

func securityBoard() Dashboard {
	return Dashboard{
		File: "portcullis-security", Title: "Security", Help: "Violations, keys of devices, and proof of isolation.",
		Panels: []Panel{
			{Title: "Pairs that leak", Help: "Of the last examination of all tenants: want 0.", Unit: "short", Now: true, Queries: []Query{{`max(portcullis_isolation_pairs{verdict="leaks",$F})`, ""}}},
			{Title: "Age of the proof", Help: "Time since an examination began that found all tenants isolated.", Unit: "s", Now: true, Queries: []Query{{`time() - max(portcullis_isolation_proven_timestamp_seconds{$F})`, ""}}},
			{Title: "Audit log whole", Help: "1 while the audit log is what was written.", Unit: "short", Now: true, Queries: []Query{{`min(portcullis_audit_whole{$F})`, ""}}},
			{Title: "Oldest key", Help: "Age of the oldest key that a device holds.", Unit: "s", Now: true, Queries: []Query{{`max(portcullis_key_age_seconds{quantile="max",$F})`, ""}}},
			{Title: "Violations", Help: "Violations a second, by class, before they are checked.", Unit: "ops", Queries: []Query{{`sum by (class) (rate(portcullis_violations_total{verdict=~"reported|counted",$F}[$__rate_interval]))`, "{{class}}"}}},
			{Title: "Confirmed and refuted", Help: "Reports a second that the device which they name confirmed or refuted.", Unit: "ops", Queries: []Query{{`sum by (verdict) (rate(portcullis_violations_total{verdict=~"confirmed|refuted",$F}[$__rate_interval]))`, "{{verdict}}"}}},
			{Title: "Devices by key", Help: "How devices stand to their M_Key.", Unit: "short", Queries: []Query{{`max by (state) (portcullis_key_devices{$F})`, "{{state}}"}}},
			{Title: "Change of keys", Help: "Devices whose key changes now, and those that did not take one when it was due.", Unit: "short", Queries: []Query{{`max(portcullis_key_rotation_pending{$F})`, "pending"}, {`max(portcullis_key_rotation_failed{$F})`, "failed"}}},
			{Title: "Dropped by limiters", Help: "MADs and queries a second, by lane.", Unit: "ops", Queries: []Query{
				{`sum by (lane) (rate(portcullis_mad_limited_total{verdict!="pass",$F}[$__rate_interval]))`, "MADs, {{lane}}"},
				{`sum by (lane) (rate(portcullis_sa_limited_total{$F}[$__rate_interval]))`, "queries, {{lane}}"},
			}},
			{Title: "Queries refused", Help: "Queries a second that were refused for security.", Unit: "ops", Queries: []Query{{`sum by (verdict) (rate(portcullis_sa_refused_total{$F}[$__rate_interval]))`, "{{verdict}}"}}},
			{Title: "Verdict on isolation", Help: "1 for the verdict of the newest examination of all tenants.", Unit: "short", Queries: []Query{{`max by (verdict) (portcullis_isolation_verdict{$F})`, "{{verdict}}"}}},
			{Title: "What is not proven", Help: "Of the newest examination: declared ports of which nothing is proven, those of them that were not found, values that were not read, and ports with a P_Key of a tenant that no membership explains, and what subnet administration disclosed.", Unit: "short", Queries: []Query{
				{`max(portcullis_isolation_ports{verdict="unproven",$F})`, "ports unproven"},
				{`max(portcullis_isolation_ports_missing{$F})`, "ports missing"},
				{`max(portcullis_isolation_values_unread{$F})`, "values unread"},
				{`max(portcullis_isolation_ghost_members{$F})`, "ghost members"},
				{`max(portcullis_isolation_disclosures{$F})`, "disclosures"},
			}},
			{Title: "Ports not as declared", Help: "By the difference.", Unit: "short", Queries: []Query{{`max by (verdict) (portcullis_topology_ports{$F})`, "{{verdict}}"}}},
			{Title: "Anchors behind", Help: "For how long a place has lacked the head of the audit log.", Unit: "s", Queries: []Query{{`max by (anchor) (portcullis_audit_anchor_behind_seconds{$F})`, "{{anchor}}"}}},
			{Title: "Past of the fabric", Help: "For how long it is recorded how the fabric was, gaps included.", Unit: "s", Queries: []Query{{`max(portcullis_history_seconds{$F})`, "recorded"}}},
			{Title: "Files of the past", Help: "Bytes of the files that say how the fabric was.", Unit: "bytes", Queries: []Query{{`max(portcullis_history_bytes{$F})`, "bytes"}}},
			{Title: "Past not recorded", Help: "1 while it cannot be recorded how the fabric changes.", Unit: "short", Queries: []Query{{`max(portcullis_history_failing{$F})`, "failing"}}},
		},
	}
}

func instancesBoard() Dashboard {
	return Dashboard{
		File: "portcullis-instances", Title: "Instances and store", Help: "Instances, their store, and the API.",
		Panels: []Panel{
			{Title: "Instances that answer", Help: "Targets that Prometheus scrapes.", Unit: "short", Now: true, Queries: []Query{{`sum(up{job=~"portcullis.*",$F})`, ""}}},
			{Title: "Leaders", Help: "Instances that lead: want 1. Nothing where there is one instance.", Unit: "short", Now: true, Queries: []Query{{`sum(portcullis_leader{$F})`, ""}}},
			{Title: "Certificate", Help: "Time until the first certificate of the API ends.", Unit: "s", Now: true, Queries: []Query{{`min(portcullis_tls_certificate_end_timestamp_seconds{$F}) - time()`, ""}}},
			{Title: "Newest backup", Help: "Its age.", Unit: "s", Now: true, Queries: []Query{{`time() - max(portcullis_backup_newest_timestamp_seconds{$F})`, ""}}},
			{Title: "Parts that are not ready", Help: "By instance and part.", Unit: "short", Queries: []Query{{`1 - portcullis_ready{$F}`, "{{instance}} {{part}}"}}},
			{Title: "Lease", Help: "For how long the lease of the leader surely holds.", Unit: "s", Queries: []Query{{`portcullis_leader_lease_seconds{$F}`, "{{instance}}"}}},
			{Title: "Store", Help: "What records take, the size of the database, and its limit.", Unit: "bytes", Queries: []Query{
				{`portcullis_store_in_use_bytes{$F}`, "{{instance}} in use"}, {`portcullis_store_size_bytes{$F}`, "{{instance}} size"}, {`portcullis_store_quota_bytes{$F}`, "{{instance}} limit"},
			}},
			{Title: "Disk", Help: "Free space for the state directory.", Unit: "bytes", Queries: []Query{{`portcullis_store_disk_free_bytes{$F}`, "{{instance}}"}}},
			{Title: "Waits for the store", Help: "Facts, removals and audit entries in the journals of machines.", Unit: "short", Queries: []Query{{`sum by (instance, kind) (portcullis_store_owed{$F})`, "{{instance}} {{kind}}"}}},
			{Title: "Requests to the API", Help: "Requests a second, by status.", Unit: "ops", Queries: []Query{{`sum by (status) (rate(portcullis_http_requests_total{$F}[$__rate_interval]))`, "{{status}}"}}},
			{Title: "Time of requests", Help: "95 of 100 requests were answered in this time, by instance.", Unit: "s", Queries: []Query{{`histogram_quantile(0.95, sum by (le, instance) (rate(portcullis_http_request_seconds_bucket{$F}[$__rate_interval])))`, "{{instance}}"}}},
			{Title: "Limits", Help: "Requests and connections a second that a limit refused.", Unit: "ops", Queries: []Query{{`sum by (limit) (rate(portcullis_http_limited_total{$F}[$__rate_interval]))`, "{{limit}}"}}},
			{Title: "Webhooks", Help: "Messages a second by result.", Unit: "ops", Queries: []Query{{`sum by (webhook, result) (rate(portcullis_webhook_messages_total{$F}[$__rate_interval]))`, "{{webhook}} {{result}}"}}},
		},
	}
}
