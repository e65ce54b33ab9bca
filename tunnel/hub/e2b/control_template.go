package e2b

import (
	"fmt"
	"net/http"
	"strings"
	"time"

	"localpc/tunnel/hub/store"
)

const baseTemplate = "base"

// platformTemplate begins the names that AutoGPT gives the image of its own
// boxes, which it builds where the name is not known.
const platformTemplate = "agpt-desktop"

// offered tells whether a template is the one thing that there is here, a
// folder of a person's computer: E2B's own two of a plain computer, and
// AutoGPT's. Whoever names another one wants what is not here.
func offered(template string) bool {
	name := strings.TrimSuffix(template, ":default")
	return name == baseTemplate || name == "desktop" || name == platformTemplate || strings.HasPrefix(name, platformTemplate+"-")
}

func noTemplate(template string) string {
	return fmt.Sprintf("There is no template %q here: a sandbox is a folder of a person's computer, with the programs that are installed there. Leave the template out, or name %q.", template, baseTemplate)
}

// templateAlias serves GET /templates/aliases/{alias}: programs look there for
// the template that they are going to name.
func (f *Face) templateAlias(w http.ResponseWriter, r *http.Request, _ store.Key) {
	alias := r.PathValue("alias")
	if !offered(alias) {
		writeError(w, http.StatusNotFound, noTemplate(alias))
		return
	}
	writeJSON(w, http.StatusOK, map[string]any{"templateID": alias, "public": true})
}

// template serves GET /templates/{id}: one that is offered is ready, always.
func (f *Face) template(w http.ResponseWriter, r *http.Request, _ store.Key) {
	id := r.PathValue("id")
	if !offered(id) {
		writeError(w, http.StatusNotFound, noTemplate(id))
		return
	}
	since := time.Unix(0, 0).UTC().Format(time.RFC3339)
	writeJSON(w, http.StatusOK, map[string]any{
		"templateID": id, "public": true, "aliases": []string{id}, "names": []string{id},
		"createdAt": since, "updatedAt": since, "lastSpawnedAt": nil, "spawnCount": 0,
		"builds": []map[string]any{{
			"buildID": "00000000-0000-0000-0000-000000000000", "status": "ready", "createdAt": since, "updatedAt": since, "finishedAt": since,
			"cpuCount": 1, "memoryMB": 128, "diskSizeMB": 0, "envdVersion": envdVersion,
		}},
	})
}
