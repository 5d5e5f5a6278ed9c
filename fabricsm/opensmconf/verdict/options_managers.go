package verdict

// managerOptions are about several managers and what is kept.
var managerOptions = []Option{
	{Name: "sm_priority", Usual: "0", Class: Taken, Key: "fabric.priority", Form: Number, Most: 15, Here: "14"},
	{Name: "master_sm_priority", Usual: "14", Class: Taken, Key: "fabric.election.master_priority", Form: Number, Most: 15, Here: "15"},
	{Name: "master_sm_lid", Usual: "0", Class: Unsupported, Text: "the master keeps the LID of its own port"},
	{Name: "enable_sm_port_failover", Usual: "FALSE|0", Class: Unsupported, Text: "one port is used; another instance takes over: docs/operate/cluster.md"},
	{Name: "ignore_other_sm", Usual: "FALSE", Class: Changed, Key: "fabric.sm_key_file", Form: Planned, Text: "without an SM_Key no other manager is believed: sm_key is not taken"},
	{Name: "sminfo_polling_timeout", Usual: "10000", Class: Changed, Key: "fabric.election.poll_every", Text: "a standby asks every 500ms, and takes over in seconds", Here: "500ms"},
	{Name: "polling_retry_number", Usual: "4", Class: Taken, Key: "fabric.election.misses", Form: Number, Least: 1, Most: 100},
	{Name: "honor_guid2lid_file", Usual: "FALSE", Class: NotNeeded, Text: "after another master its LIDs are kept: they are in use"},
	{Name: "sm_inactive", Usual: "FALSE", Class: Unsupported, Text: "another manager sets it, by SMInfo"},
	{Name: "fsync_high_avail_files", Usual: "TRUE", Class: NotNeeded, Text: "what must survive is on the disk before it is used, always"},
	{Name: "cache_files_dir", Class: NotNeeded, Key: "state_dir", Text: "it is the directory of --cache; state has a directory of its own, with a guid2lid for going back"},
}

// timingOptions are about sweeps, threads and packets under way.
var timingOptions = []Option{
	{Name: "sweep_interval", Usual: "10", Class: NotNeeded, Key: "fabric.audit_period", Text: "nothing is swept: traps are processed, and every port is read again within the time of the key"},
	{Name: "sweep_on_trap", Usual: "TRUE", Class: NotNeeded, Key: "fabric.smps.trap_hold", Text: "traps are processed, always, and never faster than the key says"},
	{Name: "force_heavy_sweep", Usual: "FALSE", Class: NotNeeded, Key: "fabric.audit_period", Text: "every port is read again within the time of the key"},
	{Name: "force_heavy_sweep_window", Class: NotNeeded, Key: "fabric.audit_period", Text: "every port is read again within the time of the key"},
	{Name: "light_sweep_spst", Class: NotNeeded, Text: "nothing is swept"},
	{Name: "max_wire_smps", Usual: "4", Class: Changed, Key: "fabric.smps.window", Text: "64 are under way at once; lower the key if devices drop requests", Here: "64"},
	{Name: "max_wire_smps2", Usual: "4", Class: Changed, Key: "fabric.smps.late", Text: "a request that is late no longer holds up others"},
	{Name: "max_wire_smps_per_device", Class: Changed, Key: "fabric.smps.per_node", Text: "16 of them go to one node", Here: "16"},
	{Name: "max_smps_timeout", Usual: "600000", Class: Changed, Key: "fabric.smps.late", Text: "a request that is late no longer holds up others", Here: "25ms"},
	{Name: "transaction_timeout", Usual: "200", Class: Taken, Key: "fabric.timeout", Form: Millis, Least: 10, Most: 60_000},
	{Name: "transaction_retries", Usual: "3", Class: Taken, Key: "fabric.smps.tries", Form: Number, Least: 1, Most: 16},
	{Name: "long_transaction_timeout", Usual: "500", Class: NotNeeded, Key: "fabric.timeout", Text: "no request is sent that takes long; the key is for all"},
	{Name: "single_thread", Usual: "FALSE", Class: NotNeeded, Text: "one loop; routing uses all processors"},
	{Name: "smp_threads", Class: NotNeeded, Text: "one loop; routing uses all processors"},
	{Name: "gmp_threads", Class: NotNeeded, Text: "one loop; routing uses all processors"},
	{Name: "routing_threads_num", Class: NotNeeded, Text: "routing uses all processors"},
	{Name: "max_seq_redisc", Class: NotNeeded, Text: rediscovery},
	{Name: "max_alt_dr_path_retries", Class: NotNeeded, Text: rediscovery},
	{Name: "rediscovery_*", Class: NotNeeded, Text: rediscovery},
}

const rediscovery = "a node that falls silent is asked by another way, and holds up no other"

// qosOptions are about service levels and virtual lanes.
var qosOptions = []Option{
	{Name: "qos", Usual: "FALSE", Class: Taken, Key: "fabric.qos.enabled", Form: Planned},
	{Name: "qos_policy_file", Usual: "/etc/opensm/qos-policy.conf", Class: Taken, Key: "fabric.qos.policy", Form: File, With: "qos"},
	{Name: "suppress_sl2vl_mad_status_errors", Usual: "FALSE", Class: NotNeeded, Text: "a device that refuses a table is reported once"},
	{Name: "qos_max_vls", Usual: "0", Class: Taken, Key: "fabric.qos.options", Form: Planned, With: "qos"},
	{Name: "qos_high_limit", Usual: "-1", Class: Taken, Key: "fabric.qos.options", Form: Planned, With: "qos"},
	{Name: "qos_vlarb_high", Class: Taken, Key: "fabric.qos.options", Form: Planned, With: "qos"},
	{Name: "qos_vlarb_low", Class: Taken, Key: "fabric.qos.options", Form: Planned, With: "qos"},
	{Name: "qos_sl2vl", Class: Taken, Key: "fabric.qos.options", Form: Planned, With: "qos"},
	{Name: "qos_ca_*", Usual: "0|-1|(null)", Class: Taken, Key: "fabric.qos.options", Form: Planned, With: "qos"},
	{Name: "qos_sw0_*", Usual: "0|-1|(null)", Class: Taken, Key: "fabric.qos.options", Form: Planned, With: "qos"},
	{Name: "qos_swe_*", Usual: "0|-1|(null)", Class: Taken, Key: "fabric.qos.options", Form: Planned, With: "qos"},
	{Name: "qos_rtr_*", Usual: "0|-1|(null)", Class: Taken, Key: "fabric.qos.options", Form: Planned, With: "qos"},
	{Name: "qos_sw2sw_*", Usual: "0|-1|(null)", Class: Unsupported, Text: "ports between switches have the tables of qos_swe_*", With: "qos"},
	{Name: "qos_config_vl_enabled", Usual: "0|FALSE", Class: Unsupported, Text: "rates of service levels and virtual ports are not limited"},
	{Name: "enhanced_qos_policy_file", Class: Unsupported, Text: "rates of service levels and virtual ports are not limited"},
}

// congestionOptions are about congestion control.
var congestionOptions = []Option{
	{Name: "congestion_control", Usual: "FALSE", Class: Unsupported, Text: noCongestion},
	{Name: "mlnx_congestion_control", Usual: "0", Class: Unsupported, Text: noCongestion},
	{Name: "congestion_control_policy_file", Class: Unsupported, Text: noCongestion, With: "mlnx_congestion_control"},
	{Name: "ppcc_algo_dir", Class: Unsupported, Text: noCongestion, With: "mlnx_congestion_control"},
	{
		Name: "cc_key", Usual: "0", Class: Changed, Key: "fabric.keys.cc_key_enable", Secret: true, With: "congestion_control",
		Text: "OpenSM sends this key and sets none; here each device has one of its own, see the key",
	},
	{Name: "cc_sw_cong_setting_control_map", Usual: "0", Class: Unsupported, Text: noCongestion, With: "congestion_control"},
	{Name: "cc_sw_cong_setting_victim_mask", Usual: "0x0000000000000000000000000000000000000000000000000000000000000000", Class: Unsupported, Text: noCongestion, With: "congestion_control"},
	{Name: "cc_sw_cong_setting_credit_mask", Usual: "0x0000000000000000000000000000000000000000000000000000000000000000", Class: Unsupported, Text: noCongestion, With: "congestion_control"},
	{Name: "cc_sw_cong_setting_threshold", Usual: "0", Class: Unsupported, Text: noCongestion, With: "congestion_control"},
	{Name: "cc_sw_cong_setting_packet_size", Usual: "0", Class: Unsupported, Text: noCongestion, With: "congestion_control"},
	{Name: "cc_sw_cong_setting_credit_starvation_threshold", Usual: "0", Class: Unsupported, Text: noCongestion, With: "congestion_control"},
	{Name: "cc_sw_cong_setting_credit_starvation_return_delay", Usual: "0:0", Class: Unsupported, Text: noCongestion, With: "congestion_control"},
	{Name: "cc_sw_cong_setting_marking_rate", Usual: "0", Class: Unsupported, Text: noCongestion, With: "congestion_control"},
	{Name: "cc_ca_cong_setting_port_control", Usual: "0", Class: Unsupported, Text: noCongestion, With: "congestion_control"},
	{Name: "cc_ca_cong_setting_control_map", Usual: "0", Class: Unsupported, Text: noCongestion, With: "congestion_control"},
	{Name: "cc_ca_cong_setting_ccti_timer", Usual: "0 0", Class: Unsupported, Text: noCongestion, With: "congestion_control"},
	{Name: "cc_ca_cong_setting_ccti_increase", Usual: "0 0", Class: Unsupported, Text: noCongestion, With: "congestion_control"},
	{Name: "cc_ca_cong_setting_trigger_threshold", Usual: "0 0", Class: Unsupported, Text: noCongestion, With: "congestion_control"},
	{Name: "cc_ca_cong_setting_ccti_min", Usual: "0 0", Class: Unsupported, Text: noCongestion, With: "congestion_control"},
	{Name: "cc_cct", Class: Unsupported, Text: noCongestion, With: "congestion_control"},
}

const noCongestion = "congestion control is not configured: devices keep what they have until they are reset"
