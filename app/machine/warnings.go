package machine

import "slices"

// mostQuiet bounds how many dismissed warnings are kept in mind.
const mostQuiet = 100

// Warn adds a sentence that every window says loudly.
func (m *Machine) Warn(sentence string) {
	m.mu.Lock()
	for _, w := range m.warnings {
		if w == sentence {
			m.mu.Unlock()
			return
		}
	}
	m.warnings = append(m.warnings, sentence)
	m.mu.Unlock()
	m.changed()
}

// loud are the warnings that were not dismissed; link is the link's, "" for
// none. Called with mu held.
func (m *Machine) loud(link string) []string {
	var out []string
	for _, w := range append(slices.Clone(m.warnings), link) {
		if w != "" && !slices.Contains(m.quiet, w) {
			out = append(out, w)
		}
	}
	return out
}

// dismiss takes a warning away until the program's next start.
func (m *Machine) dismiss(warning string) {
	m.mu.Lock()
	if len(m.quiet) < mostQuiet && !slices.Contains(m.quiet, warning) {
		m.quiet = append(m.quiet, warning)
	}
	m.mu.Unlock()
	m.changed()
}
