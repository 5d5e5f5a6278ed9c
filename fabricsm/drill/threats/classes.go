package threats

import "portcullis/fabricsm/drill"

// classDrills are those of the keys of management classes, T53 to T60.
func classDrills() []drill.Drill {
	return []drill.Drill{
		{ID: "T53", Threat: "throttle a victim by congestion control MADs", Play: throttle},
		{ID: "T54", Threat: "read and write registers of switches by vendor specific MADs", Play: registers},
		{ID: "T55", Threat: "report links to switches as failed that have not, by node to node MADs", Play: falseNeighbours},
		{ID: "T56", Threat: "reset counters to hide, or read the traffic of others", Play: resetCounters},
		{ID: "T57", Threat: "use the baseboard class, or others that are not needed", Play: everyClass},
		{ID: "T58", Threat: "bury the log under violations of class keys", Play: buriedLog},
		{ID: "T59", Threat: "hide behind another one's violations", Play: twoViolators},
		{ID: "T60", Threat: "be a device whose key never changes, and is not noticed", Play: singleKeyed},
	}
}
