DROP INDEX receipt_by_its_undo;
