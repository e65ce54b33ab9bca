package setup

import (
	"bytes"
	"encoding/json"
	"fmt"
	"reflect"
	"regexp"
	"slices"
	"strings"

	"github.com/BurntSushi/toml"
	"github.com/tailscale/hujson"
)

// jsonFormat is a JSON file, with or without comments, in which servers is the
// object of servers. Edits keep every byte that is not theirs.
type jsonFormat struct{ servers string }

func (f jsonFormat) name() string { return "json " + f.servers }

func (f jsonFormat) lines(e entry) []string {
	data, err := json.MarshalIndent(map[string]any{f.servers: map[string]any{serverName: e}}, "", "  ")
	if err != nil {
		return nil // strings only: it can't be
	}
	return strings.Split(string(data), "\n")
}

// mark begins files that some editors write. It is no JSON, and stays.
var mark = []byte("\ufeff")

// pack is v as a file, with the mark if the one before had it.
func pack(before []byte, v hujson.Value) []byte {
	if bytes.HasPrefix(before, mark) {
		return slices.Concat(mark, v.Pack())
	}
	return v.Pack()
}

// parse reads a file; one that is empty is an empty object.
func (f jsonFormat) parse(data []byte) (hujson.Value, *hujson.Object, error) {
	data = bytes.TrimPrefix(data, mark)
	if len(bytes.TrimSpace(data)) == 0 {
		data = []byte("{}\n")
	}
	v, err := hujson.Parse(data)
	if err != nil {
		return v, nil, errByHand("The file is not whole JSON, so it is left as it is. Put the lines there by hand.")
	}
	top, ok := v.Value.(*hujson.Object)
	if !ok || twiceIn(top) {
		return v, nil, errByHand("The file does not look as its program writes it, so it is left as it is. Put the lines there by hand.")
	}
	return v, top, nil
}

// twiceIn: an object with the same name twice means different things to
// different readers.
func twiceIn(o *hujson.Object) bool {
	seen := map[string]bool{}
	for _, m := range o.Members {
		name := m.Name.Value.(hujson.Literal).String()
		if seen[name] {
			return true
		}
		seen[name] = true
	}
	return false
}

func member(o *hujson.Object, name string) int {
	for i, m := range o.Members {
		if m.Name.Value.(hujson.Literal).String() == name {
			return i
		}
	}
	return -1
}

// list is the object of servers; nil when there is none.
func (f jsonFormat) list(top *hujson.Object) (*hujson.Object, error) {
	i := member(top, f.servers)
	if i < 0 {
		return nil, nil
	}
	o, ok := top.Members[i].Value.Value.(*hujson.Object)
	if !ok || twiceIn(o) {
		return nil, errByHand("The file does not look as its program writes it, so it is left as it is. Put the lines there by hand.")
	}
	return o, nil
}

func (f jsonFormat) entry(data []byte) map[string]any {
	_, top, err := f.parse(data)
	if err != nil {
		return nil
	}
	list, err := f.list(top)
	if err != nil || list == nil {
		return nil
	}
	i := member(list, serverName)
	if i < 0 {
		return nil
	}
	v := list.Members[i].Value.Clone()
	v.Standardize()
	var e map[string]any
	if json.Unmarshal(v.Pack(), &e) != nil {
		return map[string]any{} // there is one, of whatever kind
	}
	return e
}

func (f jsonFormat) put(data []byte, e entry) ([]byte, error) {
	v, top, err := f.parse(data)
	if err != nil {
		return nil, err
	}
	list, err := f.list(top)
	if err != nil {
		return nil, err
	}
	now := f.entry(data)
	if now != nil && !ours(now) {
		return nil, errOther
	}
	if same(now, e) {
		return data, nil
	}
	outer := indentOf(top, "")
	if list == nil {
		list = &hujson.Object{}
		if outer != "" {
			list.AfterExtra = hujson.Extra("\n" + outer)
		}
		add(top, f.servers, hujson.Value{Value: list}, outer)
	}
	inner := indentOf(list, outer)
	if i := member(list, serverName); i >= 0 {
		list.Members[i].Value.Value, err = literal(e, inner, step(outer))
	} else {
		var value hujson.ValueTrimmed
		if value, err = literal(e, inner, step(outer)); err == nil {
			add(list, serverName, hujson.Value{Value: value}, inner)
		}
	}
	if err != nil {
		return nil, err
	}
	return pack(data, v), nil
}

// same tells whether an entry is there already as it is to be.
func same(now map[string]any, e entry) bool {
	data, err := json.Marshal(e)
	if err != nil || now == nil {
		return false
	}
	var want map[string]any
	return json.Unmarshal(data, &want) == nil && reflect.DeepEqual(now, want)
}

// literal is the value of an entry, laid out as what stands around it.
func literal(e entry, indent, step string) (hujson.ValueTrimmed, error) {
	data, err := json.Marshal(e)
	if err == nil && indent != "" {
		var b bytes.Buffer
		if err = json.Indent(&b, data, indent, step); err == nil {
			data = b.Bytes()
		}
	}
	if err != nil {
		return nil, err
	}
	v, err := hujson.Parse(data)
	return v.Value, err
}

// indentOf is how the members of an object are indented: "" for all on a line.
func indentOf(o *hujson.Object, around string) string {
	for _, m := range o.Members {
		if before := string(m.Name.BeforeExtra); strings.Contains(before, "\n") {
			return before[strings.LastIndexByte(before, '\n')+1:]
		}
	}
	if len(o.Members) > 0 {
		return ""
	}
	if around == "" {
		return "  "
	}
	return around + step(around)
}

func step(indent string) string {
	if strings.Contains(indent, "\t") {
		return "\t"
	}
	if n := len(indent); n > 0 && n <= 8 {
		return indent
	}
	return "  "
}

// add appends a member. A comment after the last one stays where it is.
func add(o *hujson.Object, name string, value hujson.Value, indent string) {
	m := hujson.ObjectMember{Name: hujson.Value{Value: hujson.String(name)}, Value: value}
	if indent != "" {
		m.Value.BeforeExtra = hujson.Extra(" ")
		m.Name.BeforeExtra = hujson.Extra("\n" + indent)
	}
	if n := len(o.Members); n > 0 {
		last := &o.Members[n-1].Value
		if last.AfterExtra != nil { // a comma follows it already: ours gets one too
			m.Value.AfterExtra = hujson.Extra{}
		}
	}
	after := string(o.AfterExtra)
	if !o.AfterExtra.IsStandard() { // comments
		text := strings.TrimRight(after, " \t\r\n")
		if indent == "" {
			indent = " "
		}
		m.Name.BeforeExtra = hujson.Extra(text + "\n" + indent)
		o.AfterExtra = hujson.Extra(after[len(text):])
		if !strings.Contains(string(o.AfterExtra), "\n") {
			o.AfterExtra = hujson.Extra("\n")
		}
	} else if indent != "" && !strings.Contains(after, "\n") {
		o.AfterExtra = hujson.Extra("\n" + outdent(indent))
	}
	o.Members = append(o.Members, m)
}

// outdent is the indent of the object around members.
func outdent(indent string) string {
	s := step("  ")
	if strings.HasSuffix(indent, "\t") {
		s = "\t"
	} else if len(indent) <= 2 || len(indent) == 4 && s != "  " {
		return ""
	}
	return strings.TrimSuffix(indent, s)
}

func (f jsonFormat) take(data []byte) ([]byte, bool, error) {
	v, top, err := f.parse(data)
	if err != nil {
		return nil, false, err
	}
	list, err := f.list(top)
	if err != nil || list == nil {
		return data, false, err
	}
	remove(list, serverName)
	if len(list.Members) == 0 && list.AfterExtra.IsStandard() && len(top.Members) == 1 {
		return pack(data, v), true, nil
	}
	return pack(data, v), false, nil
}

// remove takes a member away; comments before it stay.
func remove(o *hujson.Object, name string) {
	i := member(o, name)
	if i < 0 {
		return
	}
	gone := o.Members[i]
	if i == len(o.Members)-1 && i > 0 && gone.Value.AfterExtra == nil {
		// The one before is the last now: it needs no comma.
		o.Members[i-1].Value.AfterExtra = nil
	}
	o.Members = append(o.Members[:i], o.Members[i+1:]...)
	if before := gone.Name.BeforeExtra; !before.IsStandard() {
		text := hujson.Extra(strings.TrimRight(string(before), " \t\r\n"))
		if i < len(o.Members) {
			o.Members[i].Name.BeforeExtra = append(text, o.Members[i].Name.BeforeExtra...)
		} else {
			o.AfterExtra = append(text, o.AfterExtra...)
		}
	}
}

var inline = regexp.MustCompile(`(?m)^\s*["']?mcp_servers["']?\s*=`)

// tomlFormat is Codex's file: ours is a table at its end.
type tomlFormat struct{}

func (tomlFormat) name() string { return "toml mcp_servers" }

func (tomlFormat) lines(e entry) []string {
	out := []string{"[mcp_servers." + serverName + "]"}
	for _, f := range e {
		// A JSON string or list of strings is TOML too, but for two escapes that
		// JSON writes only where asked to.
		var b bytes.Buffer
		enc := json.NewEncoder(&b)
		enc.SetEscapeHTML(false)
		if err := enc.Encode(f.value); err != nil {
			return nil
		}
		out = append(out, fmt.Sprintf("%s = %s", f.name, strings.TrimSpace(b.String())))
	}
	return out
}

func (tomlFormat) servers(data []byte) (map[string]any, error) {
	var all map[string]any
	if err := toml.Unmarshal(data, &all); err != nil {
		return nil, errByHand("The file is not whole TOML, so it is left as it is. Put the lines there by hand.")
	}
	if all["mcp_servers"] == nil {
		return nil, nil
	}
	servers, ok := all["mcp_servers"].(map[string]any)
	if !ok {
		return nil, errByHand("The file does not look as its program writes it, so it is left as it is. Put the lines there by hand.")
	}
	return servers, nil
}

func (f tomlFormat) entry(data []byte) map[string]any {
	servers, err := f.servers(data)
	if err != nil || servers[serverName] == nil {
		return nil
	}
	e, ok := servers[serverName].(map[string]any)
	if !ok {
		return map[string]any{}
	}
	return e
}

func (f tomlFormat) put(data []byte, e entry) ([]byte, error) {
	if _, err := f.servers(data); err != nil {
		return nil, err
	}
	if inline.Match(data) { // nothing may be added to such a table
		return nil, errByHand("The file lists its servers in a way that can't be added to, so it is left as it is. Put the lines there by hand.")
	}
	if before := f.entry(data); before != nil {
		if !ours(before) {
			return nil, errOther
		}
		if same(before, e) {
			return data, nil
		}
		rest, _, err := f.take(data)
		if err != nil {
			return nil, err
		}
		data = rest
	}
	var b bytes.Buffer
	b.Write(data)
	if len(data) > 0 {
		if !bytes.HasSuffix(data, []byte("\n")) {
			b.WriteByte('\n')
		}
		b.WriteByte('\n')
	}
	b.WriteString(strings.Join(f.lines(e), "\n") + "\n")
	if !same(f.entry(b.Bytes()), e) || !reflect.DeepEqual(besides(data), besides(b.Bytes())) {
		return nil, errByHand("The file lists its servers in a way that can't be added to, so it is left as it is. Put the lines there by hand.")
	}
	return b.Bytes(), nil
}

// besides is all that a file says but our entry.
func besides(data []byte) map[string]any {
	all := map[string]any{}
	if toml.Unmarshal(data, &all) != nil {
		return nil
	}
	if servers, ok := all["mcp_servers"].(map[string]any); ok {
		if delete(servers, serverName); len(servers) == 0 {
			delete(all, "mcp_servers")
		}
	}
	return all
}

// take cuts our table: from its head to the next one's, or the end.
func (f tomlFormat) take(data []byte) ([]byte, bool, error) {
	head := "[mcp_servers." + serverName + "]"
	lines := strings.SplitAfter(string(data), "\n")
	var out strings.Builder
	inside, cut := false, false
	for _, line := range lines {
		text := strings.TrimSpace(line)
		switch {
		case text == head:
			inside, cut = true, true
			continue
		case inside && strings.HasPrefix(text, "["):
			inside = strings.HasPrefix(text, "[mcp_servers."+serverName+".")
		}
		if !inside {
			out.WriteString(line)
		}
	}
	after := []byte(out.String())
	if cut && !bytes.HasSuffix(data, []byte("\n\n")) {
		after = bytes.TrimSuffix(after, []byte("\n")) // the empty line that put made
	}
	if !cut || f.entry(after) != nil || !reflect.DeepEqual(besides(data), besides(after)) {
		return nil, false, errByHand("The file names its servers in a way that can't be changed safely, so it is left as it is.")
	}
	if len(after) > 0 && !bytes.HasSuffix(after, []byte("\n")) {
		after = append(after, '\n')
	}
	return after, len(bytes.TrimSpace(after)) == 0, nil
}
