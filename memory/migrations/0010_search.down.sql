DROP TABLE embedding_task;
DROP TABLE fact_embedding;
DROP TABLE fact_document;
DROP TABLE posting;
DROP FUNCTION fact_document_has_its_postings();
