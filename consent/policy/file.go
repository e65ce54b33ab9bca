package policy

import (
	"cmp"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"path"
	"reflect"
	"slices"
	"strconv"
	"strings"

	"github.com/BurntSushi/toml"
	"golang.org/x/net/idna"

	"localpc/consent"
)

// File is a policy file: what is allowed and denied on a computer that nobody
// sits at. Make it with ParseFile.
type File struct {
	Name   string       // of the file, for people; set by who reads it
	Folder string       // absolute; of every session
	Mode   consent.Mode // of every session
	// Ask: what no rule covers is asked, and what was remembered counts.
	// Otherwise it is denied.
	Ask         bool
	allow, deny []fileRule
}

// fileRule is one [[allow]] or [[deny]]. What is "" or nil matches all.
type fileRule struct {
	line                               int
	program, capability, action, exact string
	hosts                              []string
	effects                            []consent.EffectKind
	contained, full                    bool
}

// The actions that a rule may name. A name that is not known would never match.
var fileActions = map[string][]string{
	consent.CapabilityFiles:   {"read", "stat", "list", "search", "watch", "write", "mkdir", "move", "delete"},
	consent.CapabilityShell:   {"run"},
	consent.CapabilityNetwork: {"internet", "home", "local", "link"},
	// An exact text of "act" is "mouse and keyboard"; of "launch", the program
	// with its arguments as the card shows it.
	consent.CapabilityComputer: {"see", "act", "launch", "clipboard-read", "clipboard-write"},
}

// The effects that a rule may name; high ones never go without asking, so that
// only a denial may.
var (
	fileEffects = []consent.EffectKind{consent.EffectRead, consent.EffectCreate, consent.EffectOverwrite, consent.EffectDelete, consent.EffectMove,
		consent.EffectAccess, consent.EffectRun, consent.EffectConnect, consent.EffectInstall,
		consent.EffectSee, consent.EffectControl, consent.EffectClipboard}
	highEffects = []consent.EffectKind{consent.EffectStartup, consent.EffectEnv, consent.EffectSettings, consent.EffectRoot, consent.EffectUnknown}
)

// ParseFile reads a policy file's bytes. What is not known, is of the wrong kind
// or stands there twice is an error that begins with its line; the first one is
// told.
func ParseFile(data []byte) (*File, error) {
	var doc map[string]any
	if err := toml.Unmarshal(data, &doc); err != nil {
		var pe toml.ParseError
		if errors.As(err, &pe) {
			return nil, fmt.Errorf("line %d: %s", max(1, pe.Position.Line), pe.Message)
		}
		return nil, fmt.Errorf("line 1: %w", err)
	}
	p := &fileParser{lines: keyLines(data)}
	f := &File{Mode: consent.ModeAsk}
	top := at{}
	for key, v := range doc {
		switch key {
		case "folder":
			if f.Folder = p.text(top, key, v); f.Folder != "" && (!path.IsAbs(f.Folder) || path.Clean(f.Folder) != f.Folder) {
				p.fail(top, key, "folder must be an absolute path, without . and .. in it")
			}
		case "mode":
			f.Mode = consent.Mode(p.text(top, key, v))
			if f.Mode == consent.ModeTrusted {
				p.fail(top, key, `mode = "trusted" needs a person, who gives it for 15 minutes; use "look", "work" or "ask"`)
			} else if !lasting(f.Mode) {
				p.fail(top, key, `mode must be "look", "work" or "ask"`)
			}
		case "otherwise":
			switch s := p.text(top, key, v); s {
			case "ask", "deny":
				f.Ask = s == "ask"
			default:
				p.fail(top, key, `otherwise must be "deny" or "ask"`)
			}
		case "allow":
			f.allow = p.rules(key, v)
		case "deny":
			f.deny = p.rules(key, v)
		default:
			p.fail(top, key, "%s is not known here; use folder, mode, otherwise, [[allow]] and [[deny]]", consent.Visible(key, false))
		}
	}
	if _, ok := doc["folder"]; !ok {
		p.problems = append(p.problems, problem{1, "folder is missing: the one folder that programs may work in"})
	}
	if len(p.problems) > 0 {
		first := slices.MinFunc(p.problems, func(a, b problem) int {
			return cmp.Or(cmp.Compare(a.line, b.line), cmp.Compare(a.text, b.text))
		})
		return nil, fmt.Errorf("line %d: %s", first.line, first.text)
	}
	return f, nil
}

// at is a place in the file: the top, or the nth table of a kind.
type at struct {
	table string
	n     int
}

type problem struct {
	line int
	text string
}

type fileParser struct {
	lines    map[at]map[string]int
	problems []problem
}

// fail notes a problem with a key; "" is the table itself.
func (p *fileParser) fail(t at, key, format string, args ...any) {
	line := cmp.Or(p.lines[t][key], p.lines[t][""], p.lines[at{}][t.table], 1)
	p.problems = append(p.problems, problem{line, fmt.Sprintf(format, args...)})
}

func (p *fileParser) text(t at, key string, v any) string {
	s, ok := v.(string)
	if !ok || s == "" {
		p.fail(t, key, "%s must be a text in quotes, and not empty", key)
	}
	return s
}

func (p *fileParser) texts(t at, key string, v any) []string {
	list, ok := v.([]any)
	var out []string
	for _, e := range list {
		s, isText := e.(string)
		ok = ok && isText && s != ""
		out = append(out, s)
	}
	if !ok || len(out) == 0 {
		p.fail(t, key, "%s must be a list of texts in quotes: [\"…\", \"…\"]", key)
		return nil
	}
	for i, s := range out {
		if slices.Contains(out[:i], s) {
			p.fail(t, key, "%s has %q twice", key, s)
		}
	}
	return out
}

// yes is a key that is only ever set to true.
func (p *fileParser) yes(t at, key string, v any) bool {
	if v != true {
		p.fail(t, key, "%s must be true; leave the line out where it is not", key)
	}
	return true
}

func (p *fileParser) rules(table string, v any) []fileRule {
	list, ok := v.([]map[string]any)
	if !ok {
		p.fail(at{}, table, "write each rule below a line [[%s]] of its own", table)
		return nil
	}
	var out []fileRule
	for n, keys := range list {
		t := at{table, n}
		r := p.rule(t, keys)
		r.line = cmp.Or(p.lines[t][""], 1)
		for _, other := range out {
			if line := other.line; reflect.DeepEqual(r, other.on(r.line)) {
				p.fail(t, "", "this rule stands at line %d already", line)
			}
		}
		out = append(out, r)
	}
	return out
}

// on is the rule as if it stood at that line.
func (r fileRule) on(line int) fileRule {
	r.line = line
	return r
}

func (p *fileParser) rule(t at, keys map[string]any) fileRule {
	var r fileRule
	before := len(p.problems)
	for key, v := range keys {
		switch key {
		case "program":
			r.program = p.text(t, key, v)
		case "capability":
			if r.capability = p.text(t, key, v); fileActions[r.capability] == nil {
				p.fail(t, key, `capability must be "files", "shell", "network" or "computer"`)
			}
		case "action":
			r.action = p.text(t, key, v)
		case "exact":
			r.exact = p.text(t, key, v)
		case "hosts":
			r.hosts = p.texts(t, key, v)
		case "effects":
			for _, s := range p.texts(t, key, v) {
				r.effects = append(r.effects, consent.EffectKind(s))
			}
		case "contained":
			r.contained = p.yes(t, key, v)
		case "full":
			r.full = p.yes(t, key, v)
		default:
			p.fail(t, key, "%s is not known in a rule; use program, capability, action, exact, hosts, effects, contained and full", consent.Visible(key, false))
		}
	}
	slices.Sort(r.effects)
	slices.Sort(r.hosts)
	if len(p.problems) == before {
		p.fits(t, r)
	}
	return r
}

// fits holds the keys of a rule against each other.
func (p *fileParser) fits(t at, r fileRule) {
	actions := fileActions[r.capability]
	deny := t.table == "deny"
	switch {
	case r.capability == "" && !deny:
		p.fail(t, "", "a rule that allows needs a capability")
	case r.capability == "" && (r.action != "" || r.exact != ""):
		p.fail(t, "", "action and exact need a capability")
	case deny && r.program == "" && r.capability == "" && r.effects == nil && r.hosts == nil:
		p.fail(t, "", `a rule that denies everything is otherwise = "deny", without rules`)
	case r.action != "" && actions != nil && !slices.Contains(actions, r.action):
		p.fail(t, "action", "action of %s must be one of: %s", r.capability, strings.Join(actions, ", "))
	case !deny && r.capability == consent.CapabilityNetwork && r.action != "" && r.action != "internet":
		p.fail(t, "action", "only connections to the internet can be allowed beforehand; those to this computer and your own network are asked")
	}
	if r.exact != "" && r.capability == consent.CapabilityNetwork {
		p.fail(t, "exact", "name addresses with hosts: [\"example.org:443\"]")
	}
	if r.hosts != nil && r.capability != consent.CapabilityNetwork {
		p.fail(t, "hosts", "hosts are for capability = \"network\"")
	}
	for _, h := range r.hosts {
		if as, ok := hostOf(h); !ok {
			p.fail(t, "hosts", "%s is not a host like \"example.org\" or \"example.org:443\"", consent.Visible(strconv.Quote(h), false))
		} else if as != h {
			p.fail(t, "hosts", "%s would never match; write it as %q", consent.Visible(strconv.Quote(h), false), as)
		}
	}
	for _, e := range r.effects {
		switch {
		case slices.Contains(fileEffects, e), deny && slices.Contains(highEffects, e):
		case slices.Contains(highEffects, e):
			p.fail(t, "effects", "%s can't be allowed beforehand: its risk is high", e)
		default:
			p.fail(t, "effects", "%s is not an effect; use %s", consent.Visible(strconv.Quote(string(e)), false), joined(fileEffects))
		}
	}
	switch {
	case (r.full || r.contained) && deny:
		p.fail(t, "", "contained and full are for rules that allow")
	case r.full && r.contained:
		p.fail(t, "full", "a rule is either contained or full")
	case (r.full || r.contained) && r.capability != consent.CapabilityShell:
		p.fail(t, "", "contained and full are for capability = \"shell\"")
	case r.full && r.exact == "":
		p.fail(t, "full", "full access is for one exact text: add exact")
	case r.full && r.effects != nil:
		p.fail(t, "effects", "with full access a command can do everything, so effects would promise too much")
	}
}

func joined(kinds []consent.EffectKind) string {
	var out []string
	for _, k := range kinds {
		out = append(out, string(k))
	}
	return strings.Join(out, ", ")
}

// hostNames maps as the executor of connections does.
var hostNames = idna.New(idna.MapForLookup(), idna.BidiRule(), idna.StrictDomainName(false))

// hostOf is a host, with or without a port, in the one spelling that
// connections are named by: another would never match.
func hostOf(s string) (string, bool) {
	host, port := s, ""
	if h, p, err := net.SplitHostPort(s); err == nil {
		n, err := strconv.ParseUint(p, 10, 16)
		if err != nil || n == 0 {
			return "", false
		}
		host, port = h, strconv.FormatUint(n, 10)
	}
	if a, err := netip.ParseAddr(host); err == nil {
		host = a.Unmap().String()
	} else {
		if host == "" || strings.ContainsAny(host, "*/ \t@?#,;:[]%") || consent.Visible(host, false) != host {
			return "", false
		}
		if host, err = hostNames.ToASCII(host); err != nil {
			return "", false
		}
		host = strings.TrimSuffix(strings.ToLower(host), ".")
		// What ends in a number is an address in an old spelling.
		last := host[strings.LastIndex(host, ".")+1:]
		if last == "" || strings.HasPrefix(last, "0x") || strings.Trim(last, "0123456789") == "" {
			return "", false
		}
	}
	if port != "" {
		host = net.JoinHostPort(host, port)
	}
	return host, true
}

// keyLines finds where tables and keys stand; values may span lines.
func keyLines(data []byte) map[at]map[string]int {
	here, counts := at{}, map[string]int{}
	out := map[at]map[string]int{here: {}}
	quote := "" // the end of a text that goes on
	for i, line := range strings.Split(string(data), "\n") {
		inside := quote != ""
		for rest := line; ; {
			if quote != "" {
				n := strings.Index(rest, quote)
				if n < 0 {
					break
				}
				quote, rest = "", rest[n+3:]
				continue
			}
			n := strings.Index(rest, `"""`)
			if m := strings.Index(rest, "'''"); n < 0 || m >= 0 && m < n {
				n = m
			}
			if n < 0 {
				break
			}
			quote, rest = rest[n:n+3], rest[n+3:]
		}
		if inside {
			continue
		}
		line = strings.TrimSpace(line)
		if name, ok := strings.CutPrefix(line, "[["); ok {
			name, _, _ = strings.Cut(name, "]")
			name = strings.TrimSpace(name)
			here = at{name, counts[name]}
			counts[name]++
			out[here] = map[string]int{"": i + 1}
		} else if key, _, ok := strings.Cut(line, "="); ok {
			key = strings.Trim(strings.TrimSpace(key), `"'`)
			if out[here][key] == 0 {
				out[here][key] = i + 1
			}
		} else if name, ok := strings.CutPrefix(line, "["); ok && here.table == "" {
			name, _, _ = strings.Cut(name, "]")
			out[here][strings.TrimSpace(name)] = i + 1
		}
	}
	return out
}
