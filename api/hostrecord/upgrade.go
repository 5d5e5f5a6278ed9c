package hostrecord

import (
	"bytes"
	"encoding/json"
	"slices"
)

// upgradeConflict lifts a host's record of version 1, which had room for one conflict.
func upgradeConflict(data json.RawMessage) (json.RawMessage, error) {
	var r map[string]json.RawMessage
	if err := json.Unmarshal(data, &r); err != nil {
		return nil, err
	}
	if one, there := r["conflict"]; there {
		delete(r, "conflict")
		r["conflicts"] = slices.Concat(json.RawMessage{'['}, one, json.RawMessage{']'})
	}
	return json.Marshal(r)
}

// upgradeVerdict lifts a verdict about a statement of version 1, whose adapters
// had a running version for all firmware, to what version 2 has room for.
func upgradeVerdict(data json.RawMessage) (json.RawMessage, error) {
	var v map[string]any
	dec := json.NewDecoder(bytes.NewReader(data))
	dec.UseNumber() // a clock has 64 bits
	if err := dec.Decode(&v); err != nil {
		return nil, err
	}
	facts, _ := v["facts"].(map[string]any)
	statement, _ := facts["statement"].(map[string]any)
	hcas, _ := statement["hcas"].([]any)
	for _, h := range hcas {
		if h, ok := h.(map[string]any); ok {
			if running, ok := h["firmware"].(string); ok {
				h["firmware"] = map[string]any{"running": running}
			}
		}
	}
	return json.Marshal(v)
}
