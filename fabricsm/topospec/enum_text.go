package topospec

func (k Kind) String() string { return nameOf(k, "kind", kindNames) }

// MarshalText returns the name.
func (k Kind) MarshalText() ([]byte, error) { return []byte(k.String()), nil }

// UnmarshalText reads a name.
func (k *Kind) UnmarshalText(b []byte) (err error) {
	*k, err = valueOf[Kind](b, "kind", kindNames)
	return err
}

func (s LinkState) String() string { return nameOf(s, "state", linkStateNames) }

// MarshalText returns the name.
func (s LinkState) MarshalText() ([]byte, error) { return []byte(s.String()), nil }

// UnmarshalText reads a name.
func (s *LinkState) UnmarshalText(b []byte) (err error) {
	*s, err = valueOf[LinkState](b, "state", linkStateNames)
	return err
}

func (c Class) String() string { return nameOf(c, "class", classNames) }

// MarshalText returns the name.
func (c Class) MarshalText() ([]byte, error) { return []byte(c.String()), nil }

// UnmarshalText reads a name.
func (c *Class) UnmarshalText(b []byte) (err error) {
	*c, err = valueOf[Class](b, "class", classNames)
	return err
}

func (r Role) String() string { return nameOf(r, "role", roleNames) }

// MarshalText returns the name.
func (r Role) MarshalText() ([]byte, error) { return []byte(r.String()), nil }

// UnmarshalText reads a name.
func (r *Role) UnmarshalText(b []byte) (err error) {
	*r, err = valueOf[Role](b, "role", roleNames)
	return err
}

func (s Stock) String() string { return nameOf(s, "stock", stockNames) }

// MarshalText returns the name.
func (s Stock) MarshalText() ([]byte, error) { return []byte(s.String()), nil }

// UnmarshalText reads a name.
func (s *Stock) UnmarshalText(b []byte) (err error) {
	*s, err = valueOf[Stock](b, "stock", stockNames)
	return err
}

func (m Mode) String() string { return nameOf(m, "mode", modeNames) }

// MarshalText returns the name.
func (m Mode) MarshalText() ([]byte, error) { return []byte(m.String()), nil }

// UnmarshalText reads a name.
func (m *Mode) UnmarshalText(b []byte) (err error) {
	*m, err = valueOf[Mode](b, "mode", modeNames)
	return err
}

func (m FieldMode) String() string { return nameOf(m, "field mode", fieldModeNames) }

// MarshalText returns the name.
func (m FieldMode) MarshalText() ([]byte, error) { return []byte(m.String()), nil }

// UnmarshalText reads a name.
func (m *FieldMode) UnmarshalText(b []byte) (err error) {
	*m, err = valueOf[FieldMode](b, "field mode", fieldModeNames)
	return err
}

func (u UnknownLink) String() string { return nameOf(u, "unknown link", unknownNames) }

// MarshalText returns the name.
func (u UnknownLink) MarshalText() ([]byte, error) { return []byte(u.String()), nil }

// UnmarshalText reads a name.
func (u *UnknownLink) UnmarshalText(b []byte) (err error) {
	*u, err = valueOf[UnknownLink](b, "unknown link", unknownNames)
	return err
}

func (t Touch) String() string { return nameOf(t, "change", touchNames) }

// MarshalText returns the name.
func (t Touch) MarshalText() ([]byte, error) { return []byte(t.String()), nil }

// UnmarshalText reads a name.
func (t *Touch) UnmarshalText(b []byte) (err error) {
	*t, err = valueOf[Touch](b, "change", touchNames)
	return err
}
