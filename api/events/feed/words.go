package feed

// details says what a reason means.
var details = map[string]string{
	Foreign: "the position is none of this store, which may have been restored or rolled back: the stream begins now",
	Later:   "the store does not have the position yet, so it was put back: the stream begins now",
	TooOld:  "events after the position were removed for their age",
	Merged:  "single changes after the position are no longer kept: an event that happened several times follows once, with its exact count",
}

// cures says what to do about a reason.
var cures = map[string]string{
	Foreign:    "read the list of events for what happened before",
	Later:      "read the list of events for what happened before",
	TooOld:     "read the audit log for what happened then",
	Merged:     "nothing; the audit log has the times in between that were reported",
	Slow:       "connect again with the last id, and read faster or ask for less",
	Stopping:   "connect again with the last id, to this instance or another one",
	Credential: "connect again with the last id and a credential that is valid",
	NoStore:    "connect again with the last id",
}
