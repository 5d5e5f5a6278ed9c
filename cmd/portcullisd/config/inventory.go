package config

import (
	"fmt"

	"portcullis/api/inventory/signature"
	"portcullis/cmd/internal/input"
)

// Inventory says which files the inventory takes.
type Inventory struct {
	ManifestKeys string `yaml:"manifest_keys"` // file of the pinned keys; "": no manifest is taken
}

// loadManifestKeys reads the keys that rack manifests are verified with; nil: none are pinned.
func loadManifestKeys(c *Config) (*signature.Set, error) {
	if c.Inventory.ManifestKeys == "" {
		return nil, nil
	}
	file := c.Path(c.Inventory.ManifestKeys)
	data, err := input.ReadFile(file, signature.MaxFile)
	if err != nil {
		return nil, fmt.Errorf("inventory.manifest_keys: %w", err)
	}
	keys, err := signature.Parse(file, data)
	if err != nil {
		return nil, fmt.Errorf("inventory.manifest_keys: %w", err)
	}
	return keys, nil
}
