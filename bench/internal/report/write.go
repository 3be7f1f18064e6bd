// Package report writes what was measured, for machines and for readers.
package report

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"github.com/interlock-go/interlock/bench/internal/bench"
)

// Write writes results.json, table.md and the plots into a folder, which it makes.
func Write(r *bench.Report, folder string) error {
	if err := os.MkdirAll(folder, 0o755); err != nil { //nolint:gosec // results are for everybody
		return err
	}
	encoded, err := json.MarshalIndent(r, "", "\t")
	if err != nil {
		return fmt.Errorf("encode results: %w", err)
	}
	return errors.Join(
		write(filepath.Join(folder, "results.json"), append(encoded, '\n')),
		write(filepath.Join(folder, "table.md"), []byte(Markdown(r))),
		plots(r, folder),
	)
}

func write(path string, content []byte) error {
	return os.WriteFile(path, content, 0o644) //nolint:gosec // results are for everybody
}
