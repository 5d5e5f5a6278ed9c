package qos_test

import (
	"encoding/json"
	"reflect"
	"strings"
	"testing"

	"portcullis/fabricsm/qos"
)

// TestJSON: options that were written and read are the same ones, those that were
// not given included.
func TestJSON(t *testing.T) {
	for name, text := range map[string]string{
		"none":    "",
		"on":      "qos TRUE\n",
		"of all":  "qos TRUE\nqos_max_vls 8\nqos_high_limit 0\nqos_vlarb_high 0:4,1:2\nqos_vlarb_low 2:1\nqos_sl2vl 0,1,2,3,4,5,6,7,0,1,2,3,4,5,6,7\n",
		"of CAs":  "qos TRUE\nqos_ca_max_vls 4\nqos_ca_high_limit 255\nqos_swe_vlarb_low 3:9\n",
		"undone":  "qos_high_limit 7\nqos_high_limit -1\nqos_rtr_sl2vl (null)\n",
		"all the": "qos_sw0_sl2vl 15,15,15,15,15,15,15,15,15,15,15,15,15,15,15,0\n",
	} {
		t.Run(name, func(t *testing.T) {
			o, err := qos.ParseOptions("test", []byte(text))
			if err != nil {
				t.Fatal(err)
			}
			data, err := json.Marshal(o)
			if err != nil {
				t.Fatal(err)
			}
			var back qos.Options
			if err := json.Unmarshal(data, &back); err != nil || !reflect.DeepEqual(back, o) {
				t.Errorf("%v: %+v became %+v by %s", err, o, back, data)
			}
		})
	}
}

// TestJSONRefuses: values that no option can have are rejected.
func TestJSONRefuses(t *testing.T) {
	for text, want := range map[string]string{
		`{"Base":{"MaxVLs":16}}`:        "16 virtual lanes: want at most 15",
		`{"Base":{"High":[{"VL":15}]}}`: "virtual lane 15 in an arbitration table: want 0 to 14",
		`{"Of":[{"SLtoVL":[16]}]}`:      "of ca: virtual lane 16 of a service level: want 0 to 15",
		`{"Base":{"Low":[` + strings.Repeat(`{"VL":1},`, 64) + `{"VL":1}]}}`: "65 entries of an arbitration table: want at most 64",
		`{"Base":7}`: "quality of service: json: ",
	} {
		o := qos.Options{Enabled: true}
		if err := json.Unmarshal([]byte(text), &o); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%.60s: got %v, want %s", text, err, want)
		}
		if !reflect.DeepEqual(o, qos.Options{Enabled: true}) {
			t.Errorf("%.60s: options became %+v", text, o)
		}
	}
}
