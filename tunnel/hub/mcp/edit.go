package mcp

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"strings"
	"unicode/utf8"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"
	"golang.org/x/text/encoding"
	"golang.org/x/text/encoding/unicode"

	"localpc/tunnel/hub/store"
	"localpc/tunnel/wire"
)

// maxEdit is the largest file that is edited.
const maxEdit = 8 << 20

var (
	bomUTF8 = []byte("\xEF\xBB\xBF")
	bomLE   = []byte("\xFF\xFE")
	bomBE   = []byte("\xFE\xFF")
)

type editFile struct {
	where
	Path string `json:"path" jsonschema:"of the file"`
	Old  string `json:"old_text" jsonschema:"the text to replace, exactly as it is in the file; it must occur once, unless all is set"`
	New  string `json:"new_text" jsonschema:"what takes its place"`
	All  bool   `json:"all,omitempty" jsonschema:"replace every occurrence"`
}

func (f *Face) editFile(ctx context.Context, req *sdk.CallToolRequest, who Principal, in editFile) *sdk.CallToolResult {
	return f.do(ctx, req, who, "edit "+short(in.Path), func(ctx context.Context, j *job) (*sdk.CallToolResult, error) {
		return f.within(ctx, j, req, in.Machine, func(_ store.Machine, b store.Sandbox) (*sdk.CallToolResult, error) {
			data, err := f.get(ctx, b, in.Path)
			if err != nil {
				return nil, err
			}
			e, err := edit(data, in.Old, in.New, in.All)
			if err != nil {
				return nil, wire.Errorf(wire.CodeInvalid, "%s was not changed: %s.", in.Path, err)
			}
			if _, err := f.put(ctx, b, in.Path, e.data); err != nil {
				return nil, err
			}
			say := fmt.Sprintf("Replaced one place in %s, at line %d.", in.Path, e.line)
			if e.count > 1 {
				say = fmt.Sprintf("Replaced %d places in %s, the first at line %d.", e.count, in.Path, e.line)
			}
			return said(say, map[string]any{"path": in.Path, "replaced": e.count, "line": e.line}), nil
		})
	})
}

// get reads a file whole.
func (f *Face) get(ctx context.Context, b store.Sandbox, path string) ([]byte, error) {
	c, err := f.openFile(ctx, b, path, 0, -1)
	if err != nil {
		return nil, err
	}
	defer c.Close()
	if c.size > maxEdit {
		return nil, wire.Errorf(wire.CodeTooLarge, "%s has %s; files of at most %s can be edited. Use a command.", path, inBytes(c.size), inBytes(maxEdit))
	}
	return io.ReadAll(io.LimitReader(c, maxEdit+1))
}

type edited struct {
	data  []byte
	count int
	line  int // of the first place, from 1
}

// edit replaces old by new in a file. Its encoding, its mark at the beginning
// and the way its lines end stay as they are.
func edit(data []byte, old, new string, all bool) (edited, error) {
	if old == "" {
		return edited{}, sentence("old_text is empty")
	}
	if old == new {
		return edited{}, sentence("old_text and new_text are the same")
	}
	var mark []byte
	var other encoding.Encoding // nil: bytes as they are
	switch {
	case bytes.HasPrefix(data, bomUTF8):
		mark = bomUTF8
	case bytes.HasPrefix(data, bomLE):
		mark, other = bomLE, unicode.UTF16(unicode.LittleEndian, unicode.IgnoreBOM)
	case bytes.HasPrefix(data, bomBE):
		mark, other = bomBE, unicode.UTF16(unicode.BigEndian, unicode.IgnoreBOM)
	}
	body := string(data[len(mark):])
	if other != nil {
		decoded, err := other.NewDecoder().String(body)
		if again, err2 := other.NewEncoder().String(decoded); err != nil || err2 != nil || again != body {
			return edited{}, sentence("it is not valid UTF-16 text")
		}
		body = decoded
	} else if !utf8.ValidString(body) && (!ascii(old) || !ascii(new)) {
		// Which characters its other bytes stand for is not known.
		return edited{}, sentence("it is not UTF-8, so that only plain ASCII text can be replaced in it")
	}
	// A model sees and writes lines that end in \n.
	crlf := strings.Contains(body, "\r\n")
	onlyCRLF := crlf && strings.Count(body, "\n") == strings.Count(body, "\r\n")
	if crlf && !strings.Contains(body, old) {
		old, new = toCRLF(old), toCRLF(new)
	} else if onlyCRLF {
		new = toCRLF(new)
	}
	n := strings.Count(body, old)
	switch {
	case n == 0:
		return edited{}, sentence("old_text does not occur in it; read the file again, and copy the text exactly, with its spaces")
	case n > 1 && !all:
		return edited{}, sentence(fmt.Sprintf("old_text occurs %d times in it; give more of the text around the one that is meant, or set all", n))
	}
	e := edited{count: n, line: 1 + strings.Count(body[:strings.Index(body, old)], "\n")}
	body = strings.ReplaceAll(body, old, new)
	if other != nil {
		encoded, err := other.NewEncoder().String(body)
		if err != nil {
			return edited{}, sentence("new_text has characters that cannot be written in its encoding")
		}
		body = encoded
	}
	e.data = append(append(make([]byte, 0, len(mark)+len(body)), mark...), body...)
	return e, nil
}

func toCRLF(s string) string {
	return strings.ReplaceAll(strings.ReplaceAll(s, "\r\n", "\n"), "\n", "\r\n")
}

func ascii(s string) bool {
	for i := range len(s) {
		if s[i] >= utf8.RuneSelf {
			return false
		}
	}
	return true
}
