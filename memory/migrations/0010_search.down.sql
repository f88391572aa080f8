DROP TRIGGER fact_takes_its_search_rows_along ON fact;
DROP FUNCTION fact_takes_its_search_rows_along();
DROP TABLE embedding_task;
DROP TABLE fact_embedding;
DROP TABLE fact_document;
DROP TABLE posting;
DROP FUNCTION search_row_says_what_its_fact_says();
DROP FUNCTION fact_document_has_its_postings();
