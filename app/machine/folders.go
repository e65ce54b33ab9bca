package machine

import (
	"os"
	"os/user"
	"path/filepath"
	"slices"
	"strconv"
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
		home := homes()
		if len(home) == 0 {
			return ""
		}
		folder = filepath.Join(home[0], rest)
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
// the home itself, what holds either, what holds or is in our own data, and
// where the system and the log-in session keep their things.
func (ss *sessions) forbidden(real string) string {
	if real == "/" {
		return "it is the whole computer"
	}
	for _, home := range homes() {
		home = canonical(home)
		if holds(real, home) {
			return "it is or holds your whole home"
		}
		if rest, ok := strings.CutPrefix(real, strings.TrimSuffix(home, "/")+"/."); ok && rest != "" {
			return "programs keep their settings and keys in hidden folders of your home"
		}
	}
	if real == "/home" || real == "/Users" {
		return "it holds everybody's homes"
	}
	data := canonical(ss.m.o.Paths.Data)
	if holds(real, data) || holds(data, real) {
		return "this program keeps its own data there"
	}
	for _, meeting := range meetingPlaces() {
		if holds(real, meeting) || holds(meeting, real) {
			return "programs of your log-in session meet there"
		}
	}
	for _, system := range []string{"/bin", "/boot", "/dev", "/etc", "/lib", "/lib64", "/proc", "/run", "/sbin", "/sys", "/usr", "/var"} {
		switch {
		case real == system:
		case system == "/var" || holds("/run/media", real) && real != "/run/media":
			continue // people have folders and mounted disks there
		case !holds(system, real):
			continue
		}
		return "it belongs to the system"
	}
	return ""
}

// meetingPlaces are where the sockets of the display, the session bus, the
// keychain and the SSH agent are. A command that is kept in a folder reaches
// every socket in it.
func meetingPlaces() []string {
	tmp := canonical("/tmp")
	places := []string{tmp + "/.X11-unix", tmp + "/.ICE-unix"}
	for _, name := range []string{"XDG_RUNTIME_DIR", "SSH_AUTH_SOCK"} {
		if place := os.Getenv(name); filepath.IsAbs(place) {
			places = append(places, canonical(place))
		}
	}
	return places
}

// homes are the person's home directory as the environment and as the system
// has it: a program may be started with another one, or with none.
func homes() []string {
	var out []string
	if home, err := os.UserHomeDir(); err == nil && filepath.IsAbs(home) {
		out = append(out, home)
	}
	if u, err := user.LookupId(strconv.Itoa(os.Getuid())); err == nil && filepath.IsAbs(u.HomeDir) && u.HomeDir != "/" && !slices.Contains(out, u.HomeDir) {
		out = append(out, u.HomeDir)
	}
	return out
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
// program makes for new programs, and returns its path, which is canonical.
// One that leads elsewhere through a link is refused: it was another folder
// when it was shown or remembered, and a program may have put the link there.
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
	real, err := ss.lendable(folder)
	if err == nil && real != folder {
		return "", leadsElsewhere(folder)
	}
	return real, err
}

func leadsElsewhere(folder string) error {
	return wire.Errorf(wire.CodeChanged, "The folder %s is a link to another folder now, so no session was opened there. Choose a folder again.", folder)
}

func (ss *sessions) madeHere(folder string) bool {
	if first := ss.first(); first != "" && folder == canonical(first) {
		return true
	}
	return filepath.Dir(folder) == madeIn()
}

// madeIn is where folders for new programs are made; "" without a home.
func madeIn() string {
	home := homes()
	if len(home) == 0 {
		return ""
	}
	return canonical(filepath.Join(canonical(home[0]), newFolders))
}

// first is the folder that the person set.
func (ss *sessions) first() string {
	if ss.m.o.Folder != "" {
		return ss.m.o.Folder
	}
	return ss.m.o.Settings.Get().Folder
}

// suggestions are the folders on a session card, canonical, the first
// preselected.
func (ss *sessions) suggestions(r consent.Request) []string {
	if r.FolderOnly {
		return []string{r.Folder}
	}
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
			if real, err := ss.lendable(g.Rule.Folder); err == nil && real == g.Rule.Folder {
				add(real)
			}
		}
	}
	if first := ss.first(); first != "" && ss.forbidden(canonical(first)) == "" {
		add(canonical(first))
	}
	if dir := madeIn(); dir != "" {
		add(canonical(filepath.Join(dir, folderName(r.Principal.Name))))
	}
	return out
}

// usable leaves out remembered session cards whose folder has gone, can't be
// lent or is a link by now: their answer would fail each time, and the person
// never be asked.
func (ss *sessions) usable(remembered []consent.Stored) []consent.Stored {
	return slices.DeleteFunc(slices.Clone(remembered), func(g consent.Stored) bool {
		if g.Rule.Capability != consent.CapabilitySession || g.Deny {
			return false
		}
		real, err := ss.lendable(g.Rule.Folder)
		willBeMade := wire.CodeOf(err) == wire.CodePathNotFound && ss.madeHere(g.Rule.Folder)
		return !willBeMade && (err != nil || real != g.Rule.Folder)
	})
}

// folderName makes a plain folder name of a program's name.
func folderName(name string) string {
	var b strings.Builder
	for _, r := range name {
		switch {
		case (unicode.IsLetter(r) || unicode.IsDigit(r) || r == '-' || r == '_') && consent.Visible(string(r), false) == string(r):
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
		info.Folders, info.FolderOnly = m.sessions.suggestions(r), r.FolderOnly
	}
	return info
}
