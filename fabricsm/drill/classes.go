package drill

// classDrills are those of the keys of management classes, T53 to T60.
func classDrills() []Drill {
	return []Drill{
		{ID: "T53", Threat: "throttle a victim by congestion control MADs", Needs: needsClassKeys},
		{ID: "T54", Threat: "read and write registers of switches by vendor specific MADs", Needs: needsClassKeys},
		{ID: "T55", Threat: "tell switches of links that have not failed, by node to node MADs", Needs: needsClassKeys},
		{ID: "T56", Threat: "reset counters to hide, or read the traffic of others", Needs: "a key of the performance class, or somebody who watches counters that go backwards"},
		{ID: "T57", Threat: "use the baseboard class, or others that nobody needs", Needs: "B_Keys, and what drops classes that are not used"},
		{ID: "T58", Threat: "bury the log under violations of class keys", Needs: needsClassKeys},
		{ID: "T59", Threat: "hide behind another one's violations", Play: twoViolators},
		{ID: "T60", Threat: "be a device whose key never changes, and nobody notices", Play: singleKeyed},
	}
}

// needsClassKeys is why drills wait that are about the keys of classes.
const needsClassKeys = "the key manager in the stage on which drills are played: package keymgr gives the keys out, and tests of its own attack it"
