package receipts

import (
	"context"

	v1 "portcullis/api/v1"
)

// Checkpoint returns the signed head of the log of receipts.
func (s *Service) Checkpoint(ctx context.Context) ([]byte, error) { return s.log.Checkpoint(ctx) }

// LogProof returns the proof that a receipt is in the log; digest is its SHA-256 in hexadecimal.
func (s *Service) LogProof(ctx context.Context, digest string) ([]byte, error) {
	return s.log.Proof(ctx, digest)
}

// LogTile returns hashes of the tree.
func (s *Service) LogTile(ctx context.Context, level int, number int64) ([]byte, error) {
	return s.log.Tile(ctx, level, number)
}

// LogConsistency returns what proves that the log of one size continues that of a smaller one.
func (s *Service) LogConsistency(ctx context.Context, from, to int64) (*v1.ReceiptLogConsistency, error) {
	hashes, err := s.log.Consistency(ctx, from, to)
	if err != nil {
		return nil, err
	}
	out := &v1.ReceiptLogConsistency{From: from, To: to, Hashes: make([]string, len(hashes))}
	for i := range hashes {
		out.Hashes[i] = hashes[i].String()
	}
	return out, nil
}
