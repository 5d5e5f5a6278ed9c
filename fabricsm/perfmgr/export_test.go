package perfmgr

// Known returns how many agents are remembered.
func (m *Manager) Known() int { return len(m.known) }
