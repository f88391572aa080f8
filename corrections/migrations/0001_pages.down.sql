DROP TABLE verification_result;
DROP TABLE page_link;
DROP TABLE page_form;
DROP TABLE account_cache;
