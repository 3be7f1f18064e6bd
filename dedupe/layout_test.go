package dedupe_test

import (
	"os/exec"
	"slices"
	"strings"
	"testing"
)

const module = "github.com/interlock-go/interlock/"

// TestLayout keeps each package to the imports that the layout gives it: what a package does not
// import, its users do not inherit.
func TestLayout(t *testing.T) {
	t.Parallel()
	const redis = "github.com/redis/go-redis/v9/..."
	for name, allowed := range map[string][]string{
		"dedupe":                      nil,
		"dedupe/memstore":             {module + "dedupe"},
		"dedupe/atrest":               {module + "dedupe"},
		"dedupe/storetest":            {module + "dedupe"},
		"dedupe/redisstore":           {module + "dedupe", redis},
		"dedupe/redisstore/redistest": {redis, "github.com/alicebob/miniredis/v2/proto"},
		"keyfuncs":                    {module + "dedupe"},
		"httpmw":                      {module + "dedupe", "github.com/google/uuid"},
		"echomw":                      {module + "dedupe", module + "httpmw", "github.com/labstack/echo/v4/..."},
		"grpcmw": {
			module + "dedupe", "github.com/google/uuid", "google.golang.org/grpc/...", "google.golang.org/protobuf/...",
			"google.golang.org/genproto/googleapis/rpc/errdetails", "google.golang.org/genproto/googleapis/rpc/status",
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			for _, imported := range imports(t, module+name) {
				if !slices.ContainsFunc(allowed, func(a string) bool {
					under, tree := strings.CutSuffix(a, "/...")
					return imported == under || tree && strings.HasPrefix(imported, under+"/")
				}) {
					t.Errorf("%s imports %s", name, imported)
				}
			}
		})
	}
}

// imports returns what a package imports outside the standard library, tests left out.
func imports(t *testing.T, path string) []string {
	t.Helper()
	out, err := exec.CommandContext(t.Context(), "go", "list", "-f", `{{join .Imports "\n"}}`, path).Output()
	if err != nil {
		t.Fatal(err)
	}
	return slices.DeleteFunc(strings.Fields(string(out)), func(imported string) bool {
		first, _, _ := strings.Cut(imported, "/")
		return !strings.Contains(first, ".") // no domain: the standard library
	})
}
