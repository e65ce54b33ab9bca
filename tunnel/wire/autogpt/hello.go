package autogpt

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"

	"localpc/tunnel/wire"
)

var (
	versionPattern = regexp.MustCompile(`^\d+\.\d+$`)
	shimPattern    = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9._+-]*$`)
	machinePattern = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9._:-]*$`)
	sessionPattern = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9._:-]{0,255}$`)
)

// Features are the fine computer-use features that a hub knows.
var Features = []string{"screenshot.capture", "screenshot.region", "screenshot.window",
	"input.click", "input.click.modifiers", "input.click.button", "input.drag.path", "input.key.hold", "input.mouse.down_up",
	"input.scroll.amount", "input.wait", "cursor.position", "display.info", "window.list", "window.focus",
	"app.list", "app.launch", "clipboard.read", "clipboard.write", "permissions.check"}

// Coarse are the groups of them.
var Coarse = []string{"screenshot", "input", "windows", "apps", "clipboard", "permissions"}

// KnownPermissions are those of the operating system that can be checked.
var KnownPermissions = []string{"screen_recording", "accessibility", "input_monitoring"}

// Does is what a machine can do with its display.
type Does struct{ Pictures, Input, Windows, Clipboard bool }

// FeaturesOf names what a machine can do, as HELLO has it: the fine features
// and the groups. Both are empty for one that can neither take pictures nor act:
// such a machine has no computer_use. A person's consent at the hub holds for
// just these lists, so a machine says the same ones each time.
func FeaturesOf(d Does) (fine, coarse List[string]) {
	if !d.Pictures && !d.Input {
		return nil, nil
	}
	both := d.Windows && d.Input // launching and focusing act
	can := map[string]bool{"screenshot": d.Pictures, "input": d.Input, "cursor": d.Input, "display": true, "window": d.Windows, "app": d.Windows,
		"windows": both, "apps": both, "clipboard": d.Clipboard, "permissions": true,
		"screenshot.window": d.Pictures && d.Windows, "window.focus": both, "app.launch": d.Input}
	for _, f := range Features {
		ok, exact := can[f]
		if group, _, _ := strings.Cut(f, "."); !exact {
			ok = can[group]
		}
		if ok {
			fine = append(fine, f)
		}
	}
	for _, c := range Coarse {
		if can[c] {
			coarse = append(coarse, c)
		}
	}
	return fine, coarse
}

// Advertises tells whether a machine offers what needs a feature: its group or
// the feature itself is named.
func (h *Hello) Advertises(group string, fine ...string) bool {
	return slices.Contains(h.Coarse, group) || slices.ContainsFunc(fine, func(f string) bool { return slices.Contains(h.Features, f) })
}

var (
	grantable = []string{Shell, Files, ComputerUse, LocalLLM, Recording, Browse}
	channels  = []string{"floor", "browser", "desktop_ax"}
	routes    = []string{"extract_then_cloud", "local_vlm", "screenshots_to_cloud"}
)

// Hello introduces a machine, on every connection.
type Hello struct {
	ShimVersion      string       `json:"shim_version"`
	Protocol         string       `json:"protocol_version"` // the highest version spoken
	MachineID        string       `json:"machine_id" need:"yes"`
	DisplayName      string       `json:"display_name"`
	Platform         string       `json:"platform" need:"yes"` // darwin, linux, windows, wsl2
	Arch             string       `json:"arch" need:"yes"`     // x86_64, arm64
	ScreenResolution *Resolution  `json:"screen_resolution"`
	Capabilities     List[string] `json:"capabilities"`
	// AllowedRoot is null on the control connection; on a data connection it is
	// the folder that the chat is bound to, to the letter.
	AllowedRoot       *string      `json:"allowed_root"`
	LocalLLMModels    List[string] `json:"local_llm_models"`
	HardwareDevices   List[any]    `json:"hardware_devices"`
	Features          List[string] `json:"computer_use_features"`
	Coarse            List[string] `json:"computer_use_features_coarse"`
	RecordingChannels List[string] `json:"recording_channels"`
	RecordingRoutes   List[string] `json:"recording_routes"`
}

// settle drops what a hub does not know and what counts as null.
func (h *Hello) settle() {
	if h.ScreenResolution != nil && *h.ScreenResolution == (Resolution{}) {
		h.ScreenResolution = nil
	}
	h.Features, h.Coarse = only(h.Features, Features), only(h.Coarse, Coarse)
	h.RecordingChannels, h.RecordingRoutes = only(h.RecordingChannels, channels), only(h.RecordingRoutes, routes)
}

// only returns the entries of list that are known, each once.
func only(list, known []string) []string {
	var out []string
	for _, s := range list {
		if slices.Contains(known, s) && !slices.Contains(out, s) {
			out = append(out, s)
		}
	}
	return out
}

func (h *Hello) Validate() error {
	switch {
	case len(h.ShimVersion) > 64 || h.ShimVersion != "" && !shimPattern.MatchString(h.ShimVersion):
		return errors.New("shim_version must be a plain version of at most 64 characters")
	case len(h.Protocol) > 16 || !versionPattern.MatchString(h.Protocol):
		return errors.New("protocol_version must be major.minor")
	case len(h.MachineID) > 128 || !machinePattern.MatchString(h.MachineID):
		return errors.New("machine_id must have 1 to 128 letters, digits, dots, colons, dashes or underscores")
	case utf8.RuneCountInString(h.DisplayName) > 128 || !SafeText(h.DisplayName):
		return errors.New("display_name must be at most 128 characters of plain text")
	case !slices.Contains([]string{"darwin", "linux", "windows", "wsl2"}, h.Platform):
		return errors.New("platform must be darwin, linux, windows or wsl2")
	case h.Arch != "x86_64" && h.Arch != "arm64":
		return errors.New("arch must be x86_64 or arm64")
	case h.AllowedRoot != nil && !RootFits(*h.AllowedRoot):
		return errors.New("allowed_root must be an absolute path of at most 4096 characters of plain text")
	}
	for name, list := range map[string][]string{"computer_use_features": h.Features, "computer_use_features_coarse": h.Coarse,
		"recording_channels": h.RecordingChannels, "recording_routes": h.RecordingRoutes} {
		if len(list) > 128 {
			return fmt.Errorf("%s has more than 128 entries", name)
		}
		for _, s := range list {
			if utf8.RuneCountInString(s) > 128 || !SafeText(s) || strings.TrimSpace(s) != s {
				return fmt.Errorf("%s has an entry that is not allowed", name)
			}
		}
	}
	return nil
}

// SafeText tells whether s has none of the characters that a hub refuses in
// names: < and >, control, format and private characters, line separators.
func SafeText(s string) bool {
	return utf8.ValidString(s) && !strings.ContainsFunc(s, func(r rune) bool {
		return r == '<' || r == '>' || r == '\u2028' || r == '\u2029' ||
			!unicode.In(r, unicode.L, unicode.M, unicode.N, unicode.P, unicode.S, unicode.Z)
	})
}

// RootFits tells whether path can stand as allowed_root in a HELLO. A folder
// whose path can't must not be bound to a chat.
func RootFits(path string) bool {
	return path != "" && utf8.RuneCountInString(path) <= MaxRoot && SafeText(path) &&
		(path[0] == '/' || len(path) > 2 && path[1] == ':' || strings.HasPrefix(path, `\\`))
}

// HelloAck accepts a machine.
type HelloAck struct {
	// SessionID is null on the control connection, and the id of the address on
	// a data connection.
	SessionID *string `json:"session_id"`
	// ConnectionID is new for each control connection, and absent on data.
	ConnectionID   *string      `json:"connection_id,omitempty"`
	Protocol       string       `json:"protocol_version"`
	Granted        List[string] `json:"granted_capabilities" need:"yes"`
	MaxFileSize    int64        `json:"max_file_size_bytes"`
	CommandTimeout int64        `json:"command_timeout_seconds"`
	MaxConcurrent  int64        `json:"max_concurrent"`
}

// Validate leaves the fields that have a close code of their own (versions,
// session and connection ids, grants) to the machine.
func (a *HelloAck) Validate() error {
	if a.MaxFileSize < 1 || a.CommandTimeout < 1 || a.MaxConcurrent < 1 {
		return errors.New("limits must be positive")
	}
	return nil
}

// Status tells the hub how busy the machine is.
type Status struct {
	InFlight      int     `json:"in_flight" need:"yes"`
	MaxConcurrent int     `json:"max_concurrent" need:"yes"`
	QueueDepth    int     `json:"queue_depth"`     // admitted, not started
	AuditLogBytes int64   `json:"audit_log_bytes"` // of the record
	UptimeSeconds float64 `json:"uptime_seconds"`  // of this connection
}

func (s *Status) Validate() error {
	if s.InFlight < 0 || s.MaxConcurrent < 1 || s.QueueDepth < 0 || s.AuditLogBytes < 0 || s.UptimeSeconds < 0 {
		return errors.New("counts must not be negative, max_concurrent at least 1")
	}
	return nil
}

// Revoked ends the machine's right to this connection.
type Revoked struct {
	Reason     string  `json:"reason" need:"yes"` // ReasonAnother, ReasonUser, ReasonShutdown; others count as revoked
	NewMachine *string `json:"new_shim_machine_id,omitempty"`
}

// The reasons of SESSION_REVOKED.
const (
	ReasonAnother  = "another_shim_connected" // closed with 4427
	ReasonUser     = "user_revoked"
	ReasonShutdown = "platform_shutdown"
)

func (*Revoked) Validate() error { return nil }

// Negotiate returns the lower of both versions when theirs has our major; else
// false.
func Negotiate(theirs string) (string, bool) {
	if len(theirs) > 16 || !versionPattern.MatchString(theirs) {
		return "", false
	}
	a, b, _ := strings.Cut(theirs, ".")
	major, err1 := strconv.Atoi(a)
	minor, err2 := strconv.Atoi(b)
	if err1 != nil || err2 != nil || major != 1 {
		return "", false
	}
	return fmt.Sprintf("1.%d", min(minor, 1)), true
}

// Grant returns the capabilities of advertised that a hub may grant, in their
// order, each once: all that are in allowed.
func Grant(advertised, allowed []string) []string {
	out := []string{}
	for _, c := range advertised {
		if slices.Contains(grantable, c) && slices.Contains(allowed, c) && !slices.Contains(out, c) {
			out = append(out, c)
		}
	}
	return out
}

// DecodeHello reads the first frame of a connection at the hub. When it is
// refused, the error is a *CloseError. The checks that need the hub's own data
// (bindings) or the negotiation come after it.
func DecodeHello(data []byte, control bool) (Message, *Hello, error) {
	if len(data) > MaxHello {
		return Message{}, nil, &CloseError{CloseBadHello, "HELLO is over 64 KiB"}
	}
	m, err := Decode(data, wire.ToHub)
	var fe *FrameError
	switch {
	case errors.As(err, &fe) && fe.NotJSON:
		return Message{}, nil, &CloseError{CloseInternal, "HELLO is not JSON"}
	case errors.As(err, &fe):
		return Message{}, nil, &CloseError{CloseBadHello, fe.Reason}
	}
	h, ok := m.Payload.(*Hello)
	switch {
	case !ok:
		return Message{}, nil, &CloseError{CloseBadHello, "the first frame must be HELLO"}
	case control && h.AllowedRoot != nil:
		return Message{}, nil, &CloseError{CloseBadHello, "allowed_root must be null on the control connection"}
	case !control && h.AllowedRoot == nil:
		return Message{}, nil, &CloseError{CloseBadHello, "allowed_root is missing"}
	}
	return m, h, nil
}

// CloseError is an end of a connection, with the code and the reason to close
// it with.
type CloseError struct {
	Code   int
	Reason string
}

func (e *CloseError) Error() string { return fmt.Sprintf("close %d: %s", e.Code, e.Reason) }

// SessionFits tells whether id can name a chat at the machine.
func SessionFits(id string) bool { return sessionPattern.MatchString(id) }

// SessionKey is what a chat is called in the messages of localpc.v1, whose ids
// are shorter: its id, or a digest of a long one.
func SessionKey(id string) string {
	if len(id) <= wire.MaxID {
		return id
	}
	sum := sha256.Sum256([]byte(id))
	return "chat." + hex.EncodeToString(sum[:])
}
