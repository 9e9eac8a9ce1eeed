from tests.java.conftest import java

__all__ = ["java"]
