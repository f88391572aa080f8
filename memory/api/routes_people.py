"""Routes of who may come in: API keys and members."""

from django.urls import path

from memory.api.views import keys, members

_KEY = "memory/keys/<id:prefix>"
_MEMBER = "memory/members/<id:member_id>"

urlpatterns = [
    path("memory/keys", keys.Keys.as_view(), name="keys"),
    path(f"{_KEY}/rotate", keys.KeyRotation.as_view(), name="key-rotate"),
    path(f"{_KEY}/quota", keys.KeyQuota.as_view(), name="key-quota"),
    path(f"{_KEY}/revoke", keys.KeyRevocation.as_view(), name="key-revoke"),
    path(_KEY, keys.Key.as_view(), name="key"),
    path("memory/members", members.Members.as_view(), name="api-members"),
    path(f"{_MEMBER}/end", members.MemberEnd.as_view(), name="member-end"),
    path(_MEMBER, members.Member.as_view(), name="api-member"),
]
