package settings

import (
	"errors"
	"fmt"
)

// Capabilities are the switches of what may be asked for; "" means "ask".
type Capabilities struct {
	Files   string `toml:"files"`   // "ask", "read", "off"
	Shell   string `toml:"shell"`   // "ask", "contained", "off"
	Network string `toml:"network"` // "ask", "off"
	// Computer is the screen, mouse and keyboard: "ask", "see" (looking only),
	// "off".
	Computer string `toml:"computer"`
}

// Rates are requests a minute, per session; 0 means UsualRates'. What Get
// returns has no zeros.
type Rates struct {
	Session  int `toml:"session"`
	Files    int `toml:"files"`
	Shell    int `toml:"shell"`
	Network  int `toml:"network"`
	Computer int `toml:"computer"`
}

// UsualRates let an ordinary agent work and bound one that runs wild.
var UsualRates = Rates{Session: 60, Files: 3000, Shell: 600, Network: 600, Computer: 240}

// Gigabytes of old versions: what is usual, and the most.
const (
	UsualKeepGB = 2
	MaxKeepGB   = 10_000
)

func filledKeep(gb int) int {
	if gb == 0 {
		return UsualKeepGB
	}
	return gb
}

func checkKeep(gb int) error {
	if gb < -1 || gb > MaxKeepGB {
		return fmt.Errorf("keep_gb must be 1 to %d, -1 to keep no old versions, or 0 for the usual", MaxKeepGB)
	}
	return nil
}

// KeepBytes is how much of old versions is kept at most.
func (s Settings) KeepBytes() int64 { return int64(max(s.KeepGB, 0)) << 30 }

// MaxRate is the most that can be set: more than a session can make.
const MaxRate = 100_000

func (c Capabilities) filled() Capabilities {
	for _, s := range []*string{&c.Files, &c.Shell, &c.Network, &c.Computer} {
		if *s == "" {
			*s = "ask"
		}
	}
	return c
}

func (c Capabilities) check() error {
	switch {
	case c.Files != "ask" && c.Files != "read" && c.Files != "off":
		return errors.New(`files, below [capabilities], must be "ask", "read" or "off"`)
	case c.Shell != "ask" && c.Shell != "contained" && c.Shell != "off":
		return errors.New(`shell, below [capabilities], must be "ask", "contained" or "off"`)
	case c.Network != "ask" && c.Network != "off":
		return errors.New(`network, below [capabilities], must be "ask" or "off"`)
	case c.Computer != "ask" && c.Computer != "see" && c.Computer != "off":
		return errors.New(`computer, below [capabilities], must be "ask", "see" or "off"`)
	}
	return nil
}

func (r Rates) filled() Rates {
	for n, usual := range map[*int]int{&r.Session: UsualRates.Session, &r.Files: UsualRates.Files, &r.Shell: UsualRates.Shell, &r.Network: UsualRates.Network, &r.Computer: UsualRates.Computer} {
		if *n == 0 {
			*n = usual
		}
	}
	return r
}

func (r Rates) check() error {
	for name, n := range map[string]int{"session": r.Session, "files": r.Files, "shell": r.Shell, "network": r.Network, "computer": r.Computer} {
		if n < 1 || n > MaxRate {
			return fmt.Errorf("%s, below [rates], must be 1 to %d requests a minute, or 0 for the usual", name, MaxRate)
		}
	}
	return nil
}
