package machine

import (
	"os"
	"path/filepath"
	"slices"

	"strings"
	"unicode"

	"localpc/app/snapshot"
	"localpc/consent"
	"localpc/tunnel/wire"
)

// newFolders is where folders for new programs are made, below the home.
const newFolders = "Local PC"

// wish is the folder that a program asked for, canonical; "" when there is no
// such folder or it can't be lent. It grants nothing.
func (ss *sessions) wish(folder string) string {
	if folder == "" {
		return ""
	}
	if rest, ok := strings.CutPrefix(folder, "~/"); ok {
		home, err := os.UserHomeDir()
		if err != nil {
			return ""
		}
		folder = filepath.Join(home, rest)
	}
	real, err := ss.lendable(folder)
	if err != nil {
		return ""
	}
	return real
}

// lendable returns the canonical path of a directory that may be a session's
// folder, or a *wire.Error that says why not.
func (ss *sessions) lendable(folder string) (string, error) {
	if !filepath.IsAbs(folder) {
		return "", wire.Errorf(wire.CodePathOutside, "The folder %q is not an absolute path.", folder)
	}
	real, err := filepath.EvalSymlinks(folder)
	if err != nil {
		return "", folderError(folder, err)
	}
	fi, err := os.Stat(real)
	if err != nil {
		return "", folderError(folder, err)
	}
	if !fi.IsDir() {
		return "", wire.Errorf(wire.CodePathKind, "%s is not a folder.", folder)
	}
	if why := ss.forbidden(real); why != "" {
		return "", wire.Errorf(wire.CodePathOutside, "The folder %s can't be lent: %s.", folder, why)
	}
	return real, nil
}

// forbidden says why a canonical path can't be a session's folder: the root,
// the home itself, what holds either, and what holds or is in our own data.
func (ss *sessions) forbidden(real string) string {
	if real == "/" {
		return "it is the whole computer"
	}
	if home, err := os.UserHomeDir(); err == nil && holds(real, canonical(home)) {
		return "it is or holds your whole home"
	}
	data := canonical(ss.m.o.Paths.Data)
	if holds(real, data) || holds(data, real) {
		return "this program keeps its own data there"
	}
	for _, system := range []string{"/bin", "/boot", "/dev", "/etc", "/lib", "/lib64", "/proc", "/run", "/sbin", "/sys", "/usr", "/var"} {
		// Below /run and /var are folders that people use (mounted disks).
		if real == system || (system != "/run" && system != "/var" && holds(system, real)) {
			return "it belongs to the system"
		}
	}
	return ""
}

// holds tells whether dir is path or above it.
func holds(dir, path string) bool {
	return path == dir || strings.HasPrefix(path, strings.TrimSuffix(dir, "/")+"/")
}

func canonical(p string) string {
	if real, err := filepath.EvalSymlinks(p); err == nil {
		return real
	}
	return filepath.Clean(p)
}

// prepare makes the folder that was chosen, where it is one of those this
// program makes for new programs, and returns its canonical path.
func (ss *sessions) prepare(folder string) (string, error) {
	if folder == "" {
		return "", wire.Errorf(wire.CodeInvalid, "No folder was chosen for the session.")
	}
	folder = filepath.Clean(folder)
	if ours := ss.madeHere(folder); ours {
		if err := os.MkdirAll(folder, 0o755); err != nil {
			return "", folderError(folder, err)
		}
	}
	return ss.lendable(folder)
}

func (ss *sessions) madeHere(folder string) bool {
	if first := ss.first(); first != "" && folder == first {
		return true
	}
	home, err := os.UserHomeDir()
	return err == nil && filepath.Dir(folder) == filepath.Join(home, newFolders)
}

// first is the folder that the person set.
func (ss *sessions) first() string {
	if ss.m.o.Folder != "" {
		return ss.m.o.Folder
	}
	return ss.m.o.Settings.Get().Folder
}

// suggestions are the folders on a session card, the first preselected.
func (ss *sessions) suggestions(r consent.Request) []string {
	var out []string
	add := func(f string) {
		if f != "" && !slices.Contains(out, f) {
			out = append(out, f)
		}
	}
	add(r.Folder)
	remembered, err := ss.m.o.Store.Remembered(ss.m.ctx, r.Hub, r.Principal.ID)
	if err != nil {
		ss.m.log.Warn("Remembered folders could not be read", "err", err)
	}
	for _, g := range slices.Backward(remembered) {
		if g.Rule.Capability == consent.CapabilitySession && !g.Deny {
			if _, err := ss.lendable(g.Rule.Folder); err == nil {
				add(g.Rule.Folder)
			}
		}
	}
	add(ss.first())
	if home, err := os.UserHomeDir(); err == nil {
		add(filepath.Join(home, newFolders, folderName(r.Principal.Name)))
	}
	return out
}

// folderName makes a plain folder name of a program's name.
func folderName(name string) string {
	var b strings.Builder
	for _, r := range name {
		switch {
		case unicode.IsLetter(r) || unicode.IsDigit(r) || r == '-' || r == '_':
			b.WriteRune(r)
		case r == ' ' || r == '.':
			b.WriteByte(' ')
		}
		if b.Len() > 60 {
			break
		}
	}
	s := strings.Join(strings.Fields(b.String()), " ")
	if s == "" {
		return "Program"
	}
	return s
}

// cardInfo is what a card shows beside its request.
func (m *Machine) cardInfo(r consent.Request) snapshot.CardInfo {
	info := snapshot.CardInfo{ContainProblem: m.o.ContainProblem}
	if r.Capability == consent.CapabilitySession {
		info.Folders = m.sessions.suggestions(r)
	}
	return info
}
