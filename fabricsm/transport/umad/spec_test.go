package umad

import (
	"strings"
	"testing"
)

func TestParseSpec(t *testing.T) {
	for _, tt := range []struct {
		in   string
		want Options
		err  string // part of it
	}{
		{in: "umad:mlx5_0", want: Options{Device: "mlx5_0"}},
		{in: "umad:mlx5_0:1", want: Options{Device: "mlx5_0", Port: 1}},
		{in: "umad:ibp65s0-a.b:254", want: Options{Device: "ibp65s0-a.b", Port: 254}},
		{in: "umad:"},
		{in: "", err: "want umad:DEVICE[:PORT]"},
		{in: "ibsim:sim/sm", err: "want umad:DEVICE[:PORT]"},
		{in: "umad::1", err: "no device"},
		{in: "umad:mlx5_0:", err: "port"},
		{in: "umad:mlx5_0:0", err: "ports count from 1"},
		{in: "umad:mlx5_0:255", err: "port"},
		{in: "umad:mlx5_0:1:2", err: "port"},
		{in: "umad:mlx5_0/1", err: "not the name of a device"},
		{in: "umad:../..", err: "not the name of a device"},
		{in: "umad:" + strings.Repeat("a", maxDevice+1), err: "not the name of a device"},
	} {
		t.Run(tt.in, func(t *testing.T) {
			got, err := ParseSpec(tt.in)
			if tt.err != "" {
				if err == nil || !strings.Contains(err.Error(), tt.err) {
					t.Errorf("error %v, want one with %q", err, tt.err)
				}
				return
			}
			if err != nil || got.Device != tt.want.Device || got.Port != tt.want.Port {
				t.Errorf("%+v, %v; want %+v", got, err, tt.want)
			}
		})
	}
}

func FuzzParseSpec(f *testing.F) {
	f.Add("umad:mlx5_0:1")
	f.Add("umad:")
	f.Fuzz(func(t *testing.T, s string) {
		o, err := ParseSpec(s)
		if err != nil {
			return
		}
		if o.Device != "" && !validDevice(o.Device) || strings.ContainsAny(o.Device, "/:\x00") {
			t.Errorf("%q gives device %q", s, o.Device)
		}
	})
}
