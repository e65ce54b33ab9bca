package mcp

import (
	"context"
	"fmt"
	"strings"
	"time"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"localpc/tunnel/hub/store"
	"localpc/tunnel/wire"
)

const (
	// maxEntries of a directory are listed.
	maxEntries = 1000
	// maxDepth is how deep a directory is listed.
	maxDepth = 8
	// defaultHits and wire.MaxSearch bound what one search finds.
	defaultHits = 200
)

type listDirectory struct {
	where
	Path  string `json:"path,omitempty" jsonschema:"of the folder; the session's folder by default"`
	Depth int    `json:"depth,omitempty" jsonschema:"how many levels, 1 to 8 (default 1)"`
}

func (f *Face) listDirectory(ctx context.Context, req *sdk.CallToolRequest, who Principal, in listDirectory) *sdk.CallToolResult {
	if in.Path == "" {
		in.Path = "."
	}
	if in.Depth < 0 || in.Depth > maxDepth {
		return refusal(wire.Errorf(wire.CodeInvalid, "The depth must be 1 to %d.", maxDepth))
	}
	return f.do(ctx, req, who, "list "+short(in.Path), func(ctx context.Context, j *job) (*sdk.CallToolResult, error) {
		return f.within(ctx, j, req, in.Machine, func(_ store.Machine, b store.Sandbox) (*sdk.CallToolResult, error) {
			s, err := f.o.Backend.Do(ctx, b, wire.TypeFileList, &wire.FileList{SessionID: b.ID, Path: in.Path, Depth: max(in.Depth, 1), WaitMS: f.patience()})
			if err != nil {
				return nil, err
			}
			defer s.Close()
			var entries []wire.Entry
			total := 0
			for {
				msg, err := s.Recv()
				if err != nil {
					return nil, err
				}
				list, ok := msg.Payload.(*wire.FileListResponse)
				if !ok {
					return listed(entries, total), nil
				}
				total += len(list.Entries)
				entries = append(entries, list.Entries[:min(len(list.Entries), maxEntries-len(entries))]...)
			}
		})
	})
}

func listed(entries []wire.Entry, total int) *sdk.CallToolResult {
	var b strings.Builder
	rows := []map[string]any{}
	for _, e := range entries {
		if b.Len() > maxList {
			break
		}
		row := map[string]any{"path": e.Path, "kind": e.Kind}
		switch {
		case e.LinkTarget != "":
			row["link_target"] = e.LinkTarget
			fmt.Fprintf(&b, "%s -> %s\n", e.Path, e.LinkTarget)
		case e.Kind == "dir":
			fmt.Fprintf(&b, "%s/\n", e.Path)
		default:
			row["size"] = e.Size
			fmt.Fprintf(&b, "%s  (%s)\n", e.Path, inBytes(e.Size))
		}
		row["modified"] = time.UnixMilli(e.MTime).UTC().Format(time.RFC3339)
		rows = append(rows, row)
	}
	note := ""
	switch {
	case total == 0:
		note = "the folder is empty"
	case len(rows) < total:
		note = fmt.Sprintf("%d of %d entries; list a folder below, or search_files for names", len(rows), total)
	}
	return noted(&b, note, map[string]any{"entries": rows, "total": total})
}

// noted is a list with a note about it at its end.
func noted(b *strings.Builder, note string, structured map[string]any) *sdk.CallToolResult {
	if note != "" {
		b.WriteString("[" + note + "]")
		structured["note"] = note
	}
	return said(b.String(), structured)
}

type searchFiles struct {
	where
	Path       string `json:"path,omitempty" jsonschema:"the folder to look in, with all below it; the session's folder by default"`
	Name       string `json:"name,omitempty" jsonschema:"a glob on the path below that folder, such as **/*.go; every file by default"`
	Text       string `json:"text,omitempty" jsonschema:"look for this in each line; leave it out to find names only"`
	Regexp     bool   `json:"regexp,omitempty" jsonschema:"text is a regular expression (RE2)"`
	IgnoreCase bool   `json:"ignore_case,omitempty" jsonschema:"upper and lower case are the same"`
	Max        int    `json:"max,omitempty" jsonschema:"at most so many hits, 1 to 1000 (default 200)"`
}

func (f *Face) searchFiles(ctx context.Context, req *sdk.CallToolRequest, who Principal, in searchFiles) *sdk.CallToolResult {
	if in.Path == "" {
		in.Path = "."
	}
	switch {
	case in.Name == "" && in.Text == "":
		return refusal(wire.Errorf(wire.CodeInvalid, "Say what to look for: name, text, or both."))
	case in.Max < 0 || in.Max > wire.MaxSearch:
		return refusal(wire.Errorf(wire.CodeInvalid, "max must be 1 to %d.", wire.MaxSearch))
	case in.Max == 0:
		in.Max = defaultHits
	}
	what := in.Text
	if what == "" {
		what = in.Name
	}
	return f.do(ctx, req, who, "search "+short(in.Path)+" for "+short(what), func(ctx context.Context, j *job) (*sdk.CallToolResult, error) {
		return f.within(ctx, j, req, in.Machine, func(_ store.Machine, b store.Sandbox) (*sdk.CallToolResult, error) {
			p, err := f.unary(ctx, b, wire.TypeFileSearch, &wire.FileSearch{SessionID: b.ID, Path: in.Path, Name: in.Name, Text: in.Text,
				Regexp: in.Regexp, IgnoreCase: in.IgnoreCase, Max: in.Max, WaitMS: f.patience()})
			if err != nil {
				return nil, err
			}
			found, ok := p.(*wire.FileSearchResponse)
			if !ok {
				return nil, wire.Errorf(wire.CodeInternal, "The computer did not say what it found.")
			}
			return hits(found), nil
		})
	})
}

func hits(found *wire.FileSearchResponse) *sdk.CallToolResult {
	var b strings.Builder
	rows := []map[string]any{}
	for _, h := range found.Hits {
		if b.Len() > maxList {
			found.More = true
			break
		}
		row := map[string]any{"path": h.Path}
		switch {
		case h.Line > 0:
			row["line"], row["text"] = h.Line, h.Text
			fmt.Fprintf(&b, "%s:%d: %s\n", h.Path, h.Line, h.Text)
		case h.Kind == "dir":
			row["kind"] = h.Kind
			fmt.Fprintf(&b, "%s/\n", h.Path)
		default:
			row["kind"] = h.Kind
			fmt.Fprintf(&b, "%s\n", h.Path)
		}
		rows = append(rows, row)
	}
	note := ""
	switch {
	case len(rows) == 0 && found.More:
		note = "nothing found in what could be looked at in the time; look in a smaller folder"
	case len(rows) == 0:
		note = "nothing found"
	case found.More:
		note = fmt.Sprintf("the first %d; there is more: look in a smaller folder, or for something narrower", len(rows))
	}
	return noted(&b, note, map[string]any{"hits": rows, "more": found.More})
}

type path struct {
	where
	Path string `json:"path" jsonschema:"of the folder; those above it are made when they are missing"`
}

func (f *Face) makeDirectory(ctx context.Context, req *sdk.CallToolRequest, who Principal, in path) *sdk.CallToolResult {
	return f.changes(ctx, req, who, "make the folder "+short(in.Path), in.Machine, func(b store.Sandbox) (wire.Type, wire.Payload) {
		return wire.TypeFileMkdir, &wire.FilePath{SessionID: b.ID, Path: in.Path, WaitMS: f.patience()}
	}, fmt.Sprintf("The folder %s is there.", in.Path))
}

type moveFile struct {
	where
	From    string `json:"from" jsonschema:"what to move or rename: a file or a folder"`
	To      string `json:"to" jsonschema:"its new path; folders that are missing are made"`
	Replace bool   `json:"replace,omitempty" jsonschema:"take the place of a file that is there; otherwise that is refused"`
}

func (f *Face) moveFile(ctx context.Context, req *sdk.CallToolRequest, who Principal, in moveFile) *sdk.CallToolResult {
	return f.changes(ctx, req, who, "move "+short(in.From)+" to "+short(in.To), in.Machine, func(b store.Sandbox) (wire.Type, wire.Payload) {
		return wire.TypeFileMove, &wire.FileMove{SessionID: b.ID, Src: in.From, Dst: in.To, NoReplace: !in.Replace, WaitMS: f.patience()}
	}, fmt.Sprintf("Moved %s to %s.", in.From, in.To))
}

type deleteFile struct {
	where
	Path      string `json:"path" jsonschema:"of the file or folder"`
	Recursive bool   `json:"recursive,omitempty" jsonschema:"delete a folder with all that is in it; otherwise only an empty one"`
}

func (f *Face) deleteFile(ctx context.Context, req *sdk.CallToolRequest, who Principal, in deleteFile) *sdk.CallToolResult {
	return f.changes(ctx, req, who, "delete "+short(in.Path), in.Machine, func(b store.Sandbox) (wire.Type, wire.Payload) {
		return wire.TypeFileDelete, &wire.FileDelete{SessionID: b.ID, Path: in.Path, OnlyEmpty: !in.Recursive, MustExist: true, WaitMS: f.patience()}
	}, fmt.Sprintf("Deleted %s.", in.Path))
}

// changes sends a request about names, whose reply has nothing to tell.
func (f *Face) changes(ctx context.Context, req *sdk.CallToolRequest, who Principal, title, machine string, make func(store.Sandbox) (wire.Type, wire.Payload), done string) *sdk.CallToolResult {
	return f.do(ctx, req, who, title, func(ctx context.Context, j *job) (*sdk.CallToolResult, error) {
		return f.within(ctx, j, req, machine, func(_ store.Machine, b store.Sandbox) (*sdk.CallToolResult, error) {
			t, p := make(b)
			if _, err := f.unary(ctx, b, t, p); err != nil {
				return nil, err
			}
			return said(done, map[string]any{"status": "done"}), nil
		})
	})
}
