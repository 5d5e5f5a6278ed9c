package verdict

// outputOptions are about logs, dumps, counters and what watches.
var outputOptions = []Option{
	{Name: "log_file", Usual: "/var/log/opensm.log", Class: NotNeeded, Text: journal},
	{Name: "log_max_size", Usual: "0", Class: NotNeeded, Text: journal},
	{Name: "log_flags", Usual: "0x03", Class: Changed, Key: "log_level", Text: "the key is one of debug, info, warn and error"},
	{Name: "force_log_flush", Usual: "FALSE", Class: NotNeeded, Text: journal},
	{Name: "accum_log_file", Usual: "TRUE", Class: NotNeeded, Text: journal},
	{Name: "log_prefix", Class: NotNeeded, Text: journal},
	{Name: "per_module_logging_file", Usual: "/etc/opensm/per-module-logging.conf", Class: NotNeeded, Key: "log_level", Text: "levels are not set by module"},
	{Name: "syslog_log_flags", Class: NotNeeded, Text: journal},
	{Name: "log_num_backlogs", Class: NotNeeded, Text: journal},
	{Name: "dump_files_dir", Usual: "/var/log/", Class: NotNeeded, Text: "portcullis fabric dump writes OpenSM's dumps on request"},
	{Name: "node_name_map_name", Class: Unsupported, Harmless: true, Text: "names are those that nodes have, or those of the declared topology"},
	{Name: "console", Usual: "off", Class: Unsafe, Harmless: true, Key: "fabric.watch.socket", Text: "a socket of mode 0600 shows the fabric: portcullis sm top --socket"},
	{Name: "console_port", Usual: "10000", Class: NotNeeded, Text: "nothing listens on the network for a console"},
	{Name: "exit_on_fatal", Usual: "TRUE", Class: NotNeeded, Text: "faults are reported and fenced; the manager goes on"},
	{Name: "daemon", Usual: "FALSE", Class: NotNeeded, Text: "systemd runs it"},
	{Name: "event_plugin_name", Class: Unsupported, Secret: true, Text: "no code is loaded; events are on the API and in metrics: docs/operate/events.md"},
	{Name: "event_plugin_options", Class: Unsupported, Secret: true, With: "event_plugin_name", Text: "see event_plugin_name"},
	{Name: "event_db_dump_file", Class: NotNeeded, With: "perfmgr", Text: "counters are not collected"},
	{Name: "perfmgr", Usual: "FALSE", Class: Unsupported, Text: "error counters are not collected; run a collector of its own beside it, such as ibqueryerrors"},
	{Name: "perfmgr_redir", Usual: "TRUE", Class: NotNeeded, With: "perfmgr", Text: "see perfmgr"},
	{Name: "perfmgr_sweep_time_s", Usual: "180", Class: NotNeeded, With: "perfmgr", Text: "see perfmgr"},
	{Name: "perfmgr_max_outstanding_queries", Usual: "500", Class: NotNeeded, With: "perfmgr", Text: "see perfmgr"},
	{Name: "perfmgr_ignore_cas", Usual: "FALSE", Class: NotNeeded, With: "perfmgr", Text: "see perfmgr"},
	{Name: "perfmgr_rm_nodes", Usual: "TRUE", Class: NotNeeded, With: "perfmgr", Text: "see perfmgr"},
	{Name: "perfmgr_log_errors", Usual: "TRUE", Class: NotNeeded, With: "perfmgr", Text: "see perfmgr"},
	{Name: "perfmgr_query_cpi", Usual: "TRUE", Class: NotNeeded, With: "perfmgr", Text: "see perfmgr"},
	{Name: "perfmgr_xmit_wait_log", Usual: "FALSE", Class: NotNeeded, With: "perfmgr", Text: "see perfmgr"},
	{Name: "perfmgr_xmit_wait_threshold", Usual: "65535", Class: NotNeeded, With: "perfmgr", Text: "see perfmgr"},
	{Name: "osm_stats_*", Class: NotNeeded, Text: metrics},
	{Name: "enable_performance_logging", Class: NotNeeded, Text: metrics},
	{Name: "activity_report_subjects", Class: NotNeeded, Text: "what changes is in the journal, and on the API"},
}

const (
	journal = "what is logged goes to the journal"
	metrics = "metrics are served for Prometheus: docs/operate/metrics.md"
)

// vendorOptions are about unhealthy ports, and about what NVIDIA's OpenSM alone has.
var vendorOptions = []Option{
	{Name: "hm_unhealthy_ports_checks", Usual: "FALSE", Class: Changed, Key: "fabric.health", Text: health},
	{Name: "hm_ports_health_policy_file", Class: Unsupported, Key: "fabric.health.marked", Text: "mark the ports of the file: portcullis fabric health mark PLACE --reason TEXT"},
	{Name: "hm_unhealthy_ports_file", Class: Unsupported, Key: "fabric.health.marked", Text: "mark the ports of the file: portcullis fabric health mark PLACE --reason TEXT"},
	{Name: "hm_*", Class: Changed, Key: "fabric.health", With: "hm_unhealthy_ports_checks", Text: health},
	{Name: "drop_unreachable_ports_enabled", Class: NotNeeded, Text: "a port that is away is dropped, and keeps its P_Keys until it is seen elsewhere"},
	{Name: "sharp_enabled", Usual: "0|1", Class: Unsupported, Text: "aggregation nodes are not configured; their manager may register as a service"},
	{Name: "fast_recovery_enabled", Usual: "0|1", Class: Unsupported, Text: noAdaptive},
	{Name: "fast_recovery_conf_file", Class: Unsupported, With: "fast_recovery_enabled", Text: noAdaptive},
	{Name: "port_recovery_policy_enabled", Usual: "0|1|FALSE", Class: Unsupported, Text: noAdaptive},
	{Name: "device_configuration_file", Class: Unsupported, Text: noDevices},
	{Name: "fabric_mode_*", Usual: "0|FALSE", Class: Unsupported, Text: noDevices},
	{Name: "issu_*", Usual: "0|FALSE", Class: Unsupported, Text: noDevices},
	{Name: "planarized_*", Usual: "0|FALSE", Class: Unsupported, Text: noDevices},
	{Name: "nvlink_*", Usual: "0|FALSE", Class: Unsupported, Text: noDevices},
	{Name: "nvl_*", Usual: "0|FALSE", Class: Unsupported, Text: noDevices},
}

const (
	health    = "unhealthy ports are always looked for, with limits and actions of their own: compare them with the key"
	noDevices = "what only single kinds of devices have is not configured"
)
