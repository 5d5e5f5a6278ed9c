package mst

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
)

// Setting is one parameter as mstconfig says it.
type Setting struct {
	Default, Current, Next Value
	ReadOnly               bool
}

// Value is a value as printed: text with a number, such as True(1), a number, or
// neither, such as Array[0..7].
type Value struct {
	Text   string
	Number uint64
	Known  bool // Number is
}

var valuePattern = regexp.MustCompile(`^(?:[A-Za-z0-9_/. -]*\((\d{1,20})\)|(\d{1,20}))$`)

func parseValue(s string) Value {
	v := Value{Text: s}
	if m := valuePattern.FindStringSubmatch(s); m != nil {
		n, err := strconv.ParseUint(m[1]+m[2], 10, 64)
		v.Number, v.Known = n, err == nil
	}
	return v
}

// Config is what mstconfig says of one adapter.
type Config struct {
	Device, DeviceType, Name string
	Settings                 map[string]Setting // by parameter
}

// ErrTooOld means that these tools do not do it.
var ErrTooOld = errors.New("the installed tools are too old for it")

// Config asks for default, current and next value of parameters; of all without
// names.
func (s *Suite) Config(ctx context.Context, device string, parameters ...string) (*Config, error) {
	if s.config == "" {
		return nil, fmt.Errorf("mstconfig: %w", ErrNone)
	}
	if s.Version.Before(FirstJSON) {
		return nil, fmt.Errorf("JSON of settings: %w: version %v, want %v", ErrTooOld, s.Version, FirstJSON)
	}
	if err := checkDevice(device); err != nil {
		return nil, err
	}
	for _, p := range parameters {
		if !parameterPattern.MatchString(p) {
			return nil, fmt.Errorf("parameter %q: want capital letters, digits and _", p)
		}
	}
	dir, err := os.MkdirTemp("", "portcullis-mst-")
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(dir)
	file := filepath.Join(dir, "query.json")
	args := append([]string{"-d", device, "-e", "-j", file, "q"}, parameters...)
	if _, err := s.runner.run(ctx, QueryTime, s.config, args...); err != nil {
		return nil, err
	}
	data, err := readBounded(file)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", s.config, err)
	}
	return ParseConfig(data)
}

var parameterPattern = regexp.MustCompile(`^[A-Z][A-Za-z0-9_]{0,63}(\[[0-9.]{1,8}\])?$`)

func readBounded(name string) ([]byte, error) {
	f, err := os.Open(name)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	data, err := io.ReadAll(io.LimitReader(f, maxOutput+1))
	if err == nil && len(data) > maxOutput {
		err = errTooMuch
	}
	return data, err
}

// ParseConfig reads the JSON of mstconfig: exactly one adapter.
func ParseConfig(data []byte) (*Config, error) {
	var devices map[string]struct {
		Device     string `json:"device"`
		DeviceType string `json:"device_type"`
		Name       string `json:"name"`
		Settings   map[string]struct {
			Current  string `json:"current_value"`
			Default  string `json:"default_value"`
			Next     string `json:"next_value"`
			ReadOnly bool   `json:"read_only"`
		} `json:"tlv_configuration"`
	}
	if err := json.Unmarshal(data, &devices); err != nil {
		return nil, fmt.Errorf("settings: %w", err)
	}
	if len(devices) != 1 {
		return nil, fmt.Errorf("settings of %d adapters, want one", len(devices))
	}
	c := &Config{Settings: map[string]Setting{}}
	for _, d := range devices {
		c.Device, c.DeviceType, c.Name = d.Device, d.DeviceType, d.Name
		for name, s := range d.Settings {
			if !parameterPattern.MatchString(name) {
				return nil, fmt.Errorf("settings: parameter %q", clip(name))
			}
			if err := notText(s.Default + s.Current + s.Next); err != nil {
				return nil, fmt.Errorf("settings: %s: %w", name, err)
			}
			c.Settings[name] = Setting{parseValue(s.Default), parseValue(s.Current), parseValue(s.Next), s.ReadOnly}
		}
	}
	return c, nil
}
